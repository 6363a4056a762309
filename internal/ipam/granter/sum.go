package granter

import "railhead/internal/ipam"

// sum counts pools for the report.
func (r *round) sum() {
	for name, p := range r.pools {
		report := PoolReport{Total: p.total.n, Free: r.freeOf(p).count, Short: p.short, Recalled: p.recalled}
		for _, d := range p.demands {
			report.Reserve += max(0, d.held-d.wants)
		}
		for _, b := range p.books {
			if b.pool == name && b.state == known && r.books[b.name] == b {
				report.add(b.counted())
			}
		}
		r.report.Pools[name] = report
	}
}

func (p *PoolReport) add(c counts) {
	p.Held += c.held
	p.Quarantined += c.quarantined
	p.Pinned += c.pinned
	p.Parked += c.parked
}

// counts is the addresses of one ledger.
type counts struct{ held, quarantined, pinned, parked int64 }

// counted is counted once for each version of a ledger.
func (b *book) counted() counts {
	x := b.indexed()
	if x.counts != nil || x.of == nil {
		return *orNone(x.counts)
	}
	x.counts = &counts{}
	for run := range x.of.Runs() {
		n := ipam.Size(run.IPRange)
		switch {
		case run.Quarantine != nil:
			x.counts.quarantined += n
		case run.Parked():
			x.counts.parked += n
		default:
			x.counts.held += n
		}
		if run.Identity != "" {
			x.counts.pinned += n
		}
	}
	return *x.counts
}

func orNone(c *counts) *counts {
	if c == nil {
		return &counts{}
	}
	return c
}
