package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
)

// link is the way to the API server on which it tells of pods. It says once in
// the log when that is lost, and once when it is back. It is safe for concurrent
// use.
type link struct {
	log *slog.Logger

	mu  sync.Mutex
	err error // why it is lost; nil while it holds
}

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

// failure returns why the link is lost; nil while it holds.
func (l *link) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// list asks for all pods. That it is answered does not make the link hold: who
// may list may not be allowed to watch.
func (l *link) list(ctx context.Context, pods metadata.ResourceInterface, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answered := l.ask()
	list, err := pods.List(ctx, options)
	answered(err, false)
	return list, err
}

// watch asks to be told of pods, again and again where the API server is away or
// busy: client-go would do that too, but pauses without a look at the context.
func (l *link) watch(ctx context.Context, pods metadata.ResourceInterface, options metav1.ListOptions) (watch.Interface, error) {
	pauses := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 1, Steps: 6, Cap: 30 * time.Second}
	for {
		w, err := l.watchOnce(ctx, pods, options)
		if !utilnet.IsConnectionRefused(err) && !apierrors.IsTooManyRequests(err) {
			return w, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pauses.Step()):
		}
	}
}

// watchOnce begins a watch, which ends when it lasts longer than the API server
// was asked for, because then nobody is at the other end.
func (l *link) watchOnce(ctx context.Context, pods metadata.ResourceInterface, options metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	end := time.AfterFunc(patience, cancel)
	answered := l.ask()
	w, err := pods.Watch(ctx, options)
	answered(err, err == nil)
	if err != nil {
		end.Stop()
		cancel()
		return nil, err
	}
	if options.TimeoutSeconds != nil {
		end.Reset(time.Duration(*options.TimeoutSeconds)*time.Second + patience)
	}
	return &boundedWatch{w, end, cancel}, nil
}

// boundedWatch is a watch that ends at some time.
type boundedWatch struct {
	watch.Interface
	end    *time.Timer
	cancel context.CancelFunc
}

// Stop ends the watch.
func (b *boundedWatch) Stop() {
	b.end.Stop()
	b.Interface.Stop()
	b.cancel()
}

// ask is called before a question, and what it returns, with the answer: whether
// that was an error, or means that the link holds.
func (l *link) ask() (answered func(err error, holds bool)) {
	isAnswered := false // guarded by l.mu
	silence := time.AfterFunc(silenceMost, func() {
		l.mu.Lock()
		defer l.unlock(l.err)
		if !isAnswered {
			l.err = errSilent
		}
	})
	return func(err error, holds bool) {
		silence.Stop()
		l.mu.Lock()
		defer l.unlock(l.err)
		isAnswered = true
		if holds || isFailure(err) {
			l.err = err
		}
	}
}

// isFailure tells whether an error says that pods are not told of. It does not
// where another question follows at once: after a watch that an older API server
// cannot begin with what there is, or from a version that it has forgotten.
// Neither does our own end.
func isFailure(err error) bool {
	return err != nil && !errors.Is(err, context.Canceled) &&
		!apierrors.IsInvalid(err) && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err)
}

// unlock unlocks the link, and only then logs what became of it: nobody may read
// the log, and who asks for the failure must not wait for that.
func (l *link) unlock(before error) {
	now := l.err
	l.mu.Unlock()
	switch {
	case now == nil && before != nil:
		l.log.Info("the API server tells again of the node's pods")
	case now != nil && (before == nil || apierrors.ReasonForError(now) != apierrors.ReasonForError(before)):
		l.log.Warn("the API server does not tell of the node's pods, known ones stay", "error", now)
	}
}
