// Package listwatch asks an API server for the objects of a kind, and then to be
// told of them, and knows why it is not.
//
// No question waits for ever: an API server that is gone without a word, or a
// proxy before it, would leave a client that listens to nobody.
package listwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	// silenceMost is for how long a question may go without an answer before the
	// API server is taken for lost.
	silenceMost = 10 * time.Second

	// patience is after how long a question without an answer is given up. An API
	// server tells a watcher at least a bookmark a minute, and there are proxies
	// which keep the head of an answer back until its body begins.
	patience = 90 * time.Second
)

// errSilent is why nothing is told where nothing comes.
var errSilent = fmt.Errorf("no answer for %v", silenceMost)

// Questions are those about a kind.
type Questions struct {
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error)

	// Note takes why the kind is not told of, as often as that is asked; nil is
	// that it is. What it returns is called at once, and may take its time, such as
	// a line in a log that nobody reads.
	Note func(err error) (tell func())
}

// ListWatch asks them for a reflector or an informer.
func (q Questions) ListWatch() *cache.ListWatch {
	return &cache.ListWatch{ListWithContextFunc: q.list, WatchFuncWithContext: q.watch}
}

// list asks for all objects. That it is answered does not mean that they are told
// of: who may list may not be allowed to watch.
func (q Questions) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answered := q.ask()
	list, err := q.List(ctx, options)
	answered(err, false)
	return list, err
}

// watch asks to be told of objects, again and again where the API server is away
// or busy: client-go would do that too, but pauses without a look at the context.
func (q Questions) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	pauses := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 1, Steps: 6, Cap: 30 * time.Second}
	for {
		w, err := q.watchOnce(ctx, options)
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
func (q Questions) watchOnce(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	end := time.AfterFunc(patience, cancel)
	answered := q.ask()
	w, err := q.Watch(ctx, options)
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
// that was an error, or means that the kind is told of.
func (q Questions) ask() (answered func(err error, isTold bool)) {
	var mu sync.Mutex // so that silence is never noted after the answer
	isAnswered := false
	note := func(when func() (err error, isNews bool)) {
		tell := func() {}
		mu.Lock()
		if err, isNews := when(); isNews {
			tell = q.Note(err)
		}
		mu.Unlock()
		tell()
	}
	silence := time.AfterFunc(silenceMost, func() {
		note(func() (error, bool) { return errSilent, !isAnswered })
	})
	return func(err error, isTold bool) {
		silence.Stop()
		note(func() (error, bool) {
			isAnswered = true
			return err, isTold || isFailure(err)
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
