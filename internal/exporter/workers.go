package exporter

import (
	"context"
	"sync"
)

// workers are the goroutines of the network cards. The zero value has none.
type workers struct {
	running map[*nic]worker
	group   sync.WaitGroup
}

// worker is the goroutine of a card, and how to end it.
type worker struct {
	ctx context.Context
	end context.CancelFunc
}

// keep starts a worker for each card that has none, and ends those of cards
// that are gone.
func (w *workers) keep(ctx context.Context, nics []*nic) {
	before := w.running
	w.running = make(map[*nic]worker, len(nics))
	for _, n := range nics {
		known, ok := before[n]
		if !ok {
			known.ctx, known.end = context.WithCancel(ctx)
			w.group.Go(func() { n.run(known.ctx) })
		}
		w.running[n] = known
		delete(before, n)
	}
	for _, gone := range before {
		gone.end()
	}
}

// stop ends all workers and waits for them. It does not wait for a device that
// blocks.
func (w *workers) stop() {
	for _, worker := range w.running {
		worker.end()
	}
	w.group.Wait()
}
