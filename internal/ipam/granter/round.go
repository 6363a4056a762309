package granter

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// round is one pass over everything. What it decides is in books' next, and
// becomes true when that is written.
type round struct {
	*Granter

	view     View
	report   Report
	errs     []error
	leases   []*lease // of the view, in its order
	byNode   map[string]*lease
	asked    map[string][]pin
	unknown  []*book // before anything was given
	complete bool    // all ledgers of the cluster are as remembered, after the leases were read
	// deferred says that what a node is due follows from what this round writes.
	deferred bool
	unseen   bool            // a lease is there that the view lacks
	pinned   map[pinKey]bool // identities of a pool that were given something new
}

// Round does all that is to be done now: one write of each ledger that changes,
// then those of the leases' statuses. Errors are joined, and what could be done
// was done; the next round does the rest.
func (g *Granter) Round(ctx context.Context, view View) (Report, error) {
	g.turn.Lock()
	defer g.turn.Unlock()
	r := &round{Granter: g, view: view, byNode: map[string]*lease{}, pinned: map[pinKey]bool{}}
	r.report.Pools = map[string]PoolReport{}
	// Ledgers are read before any status is withdrawn: a ledger read after it may
	// hold what another leader granted anew.
	if err := r.readBooks(ctx); err != nil {
		return r.report, err
	}
	r.readLeases()
	r.readPools()
	r.rebuild(ctx)
	r.unknown = r.now().unknown
	r.withdraw(ctx)
	r.takeBack()
	r.renew()
	r.readGiving()
	r.tidy()
	r.ask()
	r.givePins()
	r.giveExact()
	r.giveWants()
	r.recall()
	r.commit(ctx)
	r.proveGiving(ctx)
	r.publish(ctx)
	r.sum()
	return r.report, errors.Join(r.errs...)
}

// failed notes an error of one object; the others go on.
func (r *round) failed(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

// each calls do for 0 to n-1, Options.Parallel at once. The calls share nothing
// but what is at their index.
func (g *Granter) each(n int, do func(i int)) {
	workers := min(g.options.Parallel, n)
	if workers <= 1 {
		for i := range n {
			do(i)
		}
		return
	}
	next := make(chan int)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
}
