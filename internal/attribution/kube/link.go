package kube

import (
	"log/slog"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// link is the way to the API server on which it tells of pods. It says once in
// the log when that is lost, and once when it is back. It is safe for concurrent
// use.
type link struct {
	log *slog.Logger

	mu  sync.Mutex
	err error // why it is lost; nil while it holds
}

// failure returns why the link is lost; nil while it holds.
func (l *link) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// note takes why the link is lost, nil if it holds, and returns what says so in
// the log where that is news: who asks for the failure must not wait for the log,
// which nobody may read.
func (l *link) note(now error) (tell func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.err
	l.err = now
	switch {
	case now == nil && before != nil:
		return func() { l.log.Info("the API server tells again of the node's pods") }
	case now != nil && (before == nil || apierrors.ReasonForError(now) != apierrors.ReasonForError(before)):
		return func() {
			l.log.Warn("the API server does not tell of the node's pods, known ones stay", "error", now)
		}
	}
	return func() {}
}
