package address

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"railhead/api/railhead/v1alpha1"
)

const (
	// watchFor is how long one watch lasts, and watchSlack after how much more it
	// is given up because nobody is at the other end.
	watchFor   = 5 * time.Minute
	watchSlack = 30 * time.Second

	// watchShort is what lasts so short that the next one waits.
	watchShort = 2 * time.Second
)

// pauses are those between questions to an API server that does not answer.
func pauses() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 20, Cap: 30 * time.Second}
}

// link is the way to the API server on which it tells of the lease. It says
// once in the log when that is lost, and once when it is back. It is safe for
// concurrent use.
type link struct {
	log   *slog.Logger
	retry chan struct{} // of one

	mu    sync.Mutex
	err   error     // why it is lost; nil while it holds
	since time.Time // when it was lost
	isOld bool      // it held once
}

func newLink(log *slog.Logger) link { return link{log: log, retry: make(chan struct{}, 1)} }

// failure returns why the link is lost, and since when; nil while it holds.
func (l *link) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return nil
	}
	return fmt.Errorf("the API server tells nothing of the node's AddressLease since %s: %w", l.since.UTC().Format(time.RFC3339), l.err)
}

// works notes that the API server is there: a link that is lost is tried at once.
func (l *link) works() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		signal(l.retry)
	}
}

// now notes how the link is.
func (l *link) now(err error) {
	l.mu.Lock()
	before, wasUp := l.err, l.isOld
	if err != nil && before == nil {
		l.since = time.Now()
	}
	l.err, l.isOld = err, l.isOld || err == nil
	l.mu.Unlock() // nobody may read the log
	switch {
	case err == nil && before != nil:
		l.log.Info("the API server tells again of the node's lease of addresses")
	case err == nil && !wasUp:
		l.log.Debug("the API server tells of the node's lease of addresses")
	case err == nil, before != nil && apierrors.ReasonForError(err) == apierrors.ReasonForError(before):
	case apierrors.IsNotFound(err):
		l.log.Info("this cluster does not know AddressLeases: no pod is given addresses until Railhead's CRDs are there", "error", err)
	default:
		l.log.Warn("the API server does not tell of the node's lease: pods get addresses that the node has, and no others", "error", err)
	}
}

// follow hears of the node's lease until ctx ends.
func (s *Service) follow(ctx context.Context) error {
	pause := pauses()
	for {
		began := time.Now()
		err := s.hear(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.link.now(err)
		}
		if time.Since(began) > watchShort {
			pause = pauses()
		}
		if err := sleepUntil(ctx, pause.Step(), s.link.retry); err != nil {
			return err
		}
	}
}

// hear reads the node's lease, and then what becomes of it for a while.
func (s *Service) hear(ctx context.Context) error {
	lease, version, err := s.client.listLease(ctx)
	if err != nil {
		return err
	}
	s.heard(lease)
	ctx, cancel := context.WithTimeout(ctx, watchFor+watchSlack)
	defer cancel()
	w, err := s.client.watchLease(ctx, version, int(watchFor.Seconds()))
	if err != nil {
		return unlessExpired(err)
	}
	defer w.Stop()
	s.link.now(nil)
	for event := range w.ResultChan() {
		if err := s.event(event); err != nil {
			return err
		}
	}
	return nil
}

// unlessExpired is an error, unless the API server forgot from where on it was to
// tell: all is read anew then.
func unlessExpired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	return err
}

// event takes what is told of the lease.
func (s *Service) event(event watch.Event) error {
	lease, isLease := event.Object.(*v1alpha1.AddressLease)
	switch {
	case event.Type == watch.Error:
		return unlessExpired(apierrors.FromObject(event.Object))
	case event.Type == watch.Deleted:
		s.heard(nil)
	case isLease && (event.Type == watch.Added || event.Type == watch.Modified):
		s.heard(lease)
	}
	return nil
}

// heard takes a version of the lease; nil where there is none.
func (s *Service) heard(lease *v1alpha1.AddressLease) {
	if lease == nil {
		s.holder.Forget()
		s.syncer.now()
		return
	}
	if err := s.holder.Observe(lease); err != nil {
		s.log.Warn("the node's AddressLease is not understood, what was known stays", "lease", lease.Name, "version", lease.ResourceVersion, "error", err)
	}
	if isRecalled(lease) {
		s.syncer.now()
	} else {
		s.syncer.soon()
	}
}

// isRecalled tells whether somebody waits for addresses that the node has.
func isRecalled(lease *v1alpha1.AddressLease) bool {
	for i := range lease.Status.Pools {
		if p := &lease.Status.Pools[i]; p.Recall > 0 || len(p.Revoke) > 0 {
			return true
		}
	}
	return false
}

// sleep waits, and returns the error of ctx if that ends before.
func sleep(ctx context.Context, d time.Duration) error { return sleepUntil(ctx, d, nil) }

// sleepUntil is sleep that a signal ends.
func sleepUntil(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wake:
	case <-timer.C:
	}
	return nil
}
