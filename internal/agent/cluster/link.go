package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// silenceMost is for how long a question may go without an answer before the
	// link is taken for lost.
	silenceMost = 10 * time.Second

	// patience is after how long a question without an answer is given up. An API
	// server tells a watcher at least a bookmark a minute, and there are proxies
	// which keep the head of an answer back until its body begins.
	patience = 90 * time.Second
)

// errSilent is why a link is lost on which nothing comes.
var errSilent = fmt.Errorf("no answer for %v", silenceMost)

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

// ask is called before a question, and what it returns, with the answer: whether
// that was an error, or means that the link holds.
func (l *link) ask() (answered func(err error, holds bool)) {
	isAnswered := false // guarded by l.all.mu
	silence := time.AfterFunc(silenceMost, func() {
		l.now(func() (error, bool) { return errSilent, !isAnswered })
	})
	return func(err error, holds bool) {
		silence.Stop()
		l.now(func() (error, bool) {
			isAnswered = true
			return err, holds || isFailure(err)
		})
	}
}

// isFailure tells whether an error says that a kind is not told of. It does not
// where another question follows at once: after a watch that an older API server
// cannot begin with what there is, or from a version that it has forgotten.
// Neither does our own end.
func isFailure(err error) bool {
	return err != nil && !errors.Is(err, context.Canceled) &&
		!apierrors.IsInvalid(err) && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err)
}

// now notes how the link is, if that is news, and only then logs it: nobody may
// read the log, and who asks for the failure must not wait for that.
func (l *link) now(how func() (err error, isNews bool)) {
	l.all.mu.Lock()
	err, isNews := how()
	if !isNews {
		l.all.mu.Unlock()
		return
	}
	tell := l.all.change(l, err)
	l.all.mu.Unlock()
	tell()
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
