package address

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"railhead/internal/ipam/holder"
)

const (
	// batchFor is for how long what the node wants and gives back is gathered
	// while nobody waits for it.
	batchFor = time.Second

	// lookEvery is how often it is looked for what time alone makes due: a reserve
	// that was too large for a while.
	lookEvery = 5 * time.Second
)

// syncer writes the node's lease, one write at a time: what comes up meanwhile
// goes into the next one. It is safe for concurrent use.
type syncer struct {
	urgent, wanted chan struct{} // of one
	must           atomic.Bool   // though nothing is known to differ
	failed         atomic.Pointer[error]
}

func newSyncer() syncer {
	return syncer{urgent: make(chan struct{}, 1), wanted: make(chan struct{}, 1)}
}

// now has the lease written at once, if it is to be written.
func (s *syncer) now() { signal(s.urgent) }

// soon has the lease written together with what comes up in the next moments.
func (s *syncer) soon() { signal(s.wanted) }

// again has the lease read and written even if it seems to be as it should.
func (s *syncer) again() {
	s.must.Store(true)
	signal(s.urgent)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run writes the lease of h until ctx ends.
func (s *syncer) run(ctx context.Context, h *holder.Holder, api holder.API, log *slog.Logger) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.urgent:
		case <-s.wanted:
			if err := s.pause(ctx, batchFor); err != nil {
				return err
			}
		case <-look.C:
		}
		if err := s.write(ctx, h, api, log); err != nil {
			return err
		}
	}
}

// pause waits, and not any longer once somebody waits for addresses.
func (s *syncer) pause(ctx context.Context, d time.Duration) error {
	return sleepUntil(ctx, d, s.urgent)
}

// write writes the lease if it does not say what it should, again and again
// until it was written. What comes up meanwhile has been signalled. The error is
// that of ctx.
func (s *syncer) write(ctx context.Context, h *holder.Holder, api holder.API, log *slog.Logger) error {
	between := pauses()
	for h.Dirty() || s.must.Load() {
		s.must.Store(false)
		err := h.Sync(ctx, api)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.told(err, log)
		if err == nil {
			return nil
		}
		s.must.Store(true)
		if err := s.rest(ctx, between.Step()); err != nil {
			return err
		}
	}
	return nil
}

// rest waits after a failure: a second, and then until it is over or somebody
// waits for addresses, since the API server may be back.
func (s *syncer) rest(ctx context.Context, d time.Duration) error {
	least := min(d, time.Second)
	if err := sleep(ctx, least); err != nil {
		return err
	}
	return s.pause(ctx, d-least)
}

// told notes how the last write went, and logs where that is news.
func (s *syncer) told(err error, log *slog.Logger) {
	before := s.failed.Load()
	if err == nil {
		s.failed.Store(nil)
		if before != nil {
			log.Info("the node's lease of addresses is written again")
		}
		return
	}
	s.failed.Store(&err)
	switch {
	case before != nil && apierrors.ReasonForError(*before) == apierrors.ReasonForError(err):
	case apierrors.IsConflict(err): // as happens wherever two write
		log.Info("somebody else wrote the node's lease of addresses first: it is read and written again", "error", err)
	default:
		log.Warn("the node's lease of addresses cannot be written: the node gets no more and gives none back", "error", err)
	}
}

// failure returns why the last write failed; nil where it did not.
func (s *syncer) failure() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}
