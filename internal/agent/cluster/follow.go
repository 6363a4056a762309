package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// pausesMost bounds the pauses between questions to an API server that fails, and
// those after answers that a person has to change.
const (
	pausesMost    = 30 * time.Second
	patientlyMost = 90 * time.Second
)

// follow keeps the store of a kind up to date until ctx ends. A kind that the API
// server does not have, or not for us, is asked for again and again, two minutes
// apart at most.
//
// The reflector is not run but asked: client-go starts anew with short pauses every
// two minutes, and a thousand nodes ask.
func (k *kind) follow(ctx context.Context) {
	asked := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: k.list, WatchFuncWithContext: k.watch}, k)
	reflector := cache.NewReflectorWithOptions(asked, k.sample, k.store, cache.ReflectorOptions{Name: k.title, TypeDescription: k.title})
	pauses := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.3, Steps: 10, Cap: patientlyMost}
	pause := pauses
	for ctx.Err() == nil {
		began := time.Now()
		_ = reflector.ListAndWatchWithContext(ctx) // the link has told it
		err := k.link.failure()
		if err == nil && time.Since(began) > pausesMost {
			pause = pauses
		}
		d := pause.Step()
		if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			d = min(d, pausesMost)
		}
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
}

// whyNotRead says why a kind was never read; nil if it was.
func (k *kind) whyNotRead() error {
	if k.store.read() {
		return nil
	}
	return k.whyNotCurrent()
}

// whyNotCurrent says why a kind was not read in this run; nil if it was.
func (k *kind) whyNotCurrent() error {
	if k.store.current() {
		return nil
	}
	err := k.link.failure()
	switch {
	case err == nil:
		return fmt.Errorf("%s (asked for now)", k.title)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s (the cluster has no such kind: its CustomResourceDefinition is not installed)", k.title)
	}
	return fmt.Errorf("%s (%w)", k.title, err)
}

// list asks for all objects. That it is answered does not make the link hold:
// who may list may not be allowed to watch.
func (k *kind) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answered := k.link.ask()
	list, err := k.asked.list(ctx, options)
	answered(err, false)
	return list, err
}

// watch asks to be told of objects, again and again where the API server is away
// or busy: client-go would do that too, but pauses without a look at the context.
func (k *kind) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	pauses := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 1, Steps: 6, Cap: 30 * time.Second}
	for {
		w, err := k.watchOnce(ctx, options)
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
func (k *kind) watchOnce(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	end := time.AfterFunc(patience, cancel)
	answered := k.link.ask()
	w, err := k.asked.watch(ctx, options)
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
