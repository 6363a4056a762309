package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"railhead/internal/listwatch"
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
	asked := listwatch.Questions{List: k.asked.list, Watch: k.asked.watch, Note: k.link.note}
	lister := cache.ToListWatcherWithWatchListSemantics(asked.ListWatch(), k)
	reflector := cache.NewReflectorWithOptions(lister, k.sample, k.store, cache.ReflectorOptions{Name: k.title, TypeDescription: k.title})
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
