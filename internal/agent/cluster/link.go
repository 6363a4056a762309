package cluster

import (
	"log/slog"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// links are the ways to the API server, one for each kind. They say in the log
// when the first is lost and when all are back, and which kinds the cluster does
// not have, once each. They are safe for concurrent use.
type links struct {
	log *slog.Logger

	mu   sync.Mutex
	lost int   // how many are, other than for a kind that is not there
	why  error // of the one that was lost last
}

// link is one of them.
type link struct {
	of  string
	all *links
	err error // why it is lost; nil while it holds. Guarded by all.mu
}

// failure returns why the link is lost; nil while it holds.
func (l *link) failure() error {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.err
}

// note takes why the link is lost, nil if it holds, and returns what says so in
// the log where that is news: who asks for the failure must not wait for the log,
// which nobody may read.
func (l *link) note(err error) (tell func()) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.all.change(l, err)
}

// change notes how a link is, and returns what says so. It is called with the
// lock held.
func (a *links) change(l *link, err error) (tell func()) {
	before, lost, why := l.err, a.lost, a.why
	l.err = err
	if isOut(before) {
		a.lost--
	}
	if isOut(err) {
		a.lost, a.why = a.lost+1, err
	}
	switch isNew := apierrors.ReasonForError(err) != apierrors.ReasonForError(why); {
	case a.lost == 0 && lost > 0:
		return func() { a.log.Info("the API server tells again of networks and pods") }
	case isOut(err) && (lost == 0 || isNew):
		return func() {
			a.log.Warn("the API server does not tell of networks and pods, known ones stay", "first", l.of, "error", err)
		}
	case apierrors.IsNotFound(err) && !apierrors.IsNotFound(before):
		return func() { a.log.Info("this cluster has no such kind", "kind", l.of, "error", err) }
	case apierrors.IsNotFound(before) && err == nil:
		return func() { a.log.Info("this cluster has this kind now", "kind", l.of) }
	}
	return func() {}
}

// isOut tells whether an error says that a kind which is there is not told of.
func isOut(err error) bool { return err != nil && !apierrors.IsNotFound(err) }
