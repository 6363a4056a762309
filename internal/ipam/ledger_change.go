package ipam

import (
	"fmt"
	"slices"

	"go4.org/netipx"
)

// Give gives free addresses to a holder. It refuses all of a set of which one
// is held (ErrHeld) or none of the part's, and an epoch of which the ledger knows a later one.
func (l *Ledger) Give(set *netipx.IPSet, to Holder, epoch int64) error {
	return l.GiveList(set.Ranges(), to, epoch)
}

// GiveList is Give for ranges in order.
func (l *Ledger) GiveList(ranges []netipx.IPRange, to Holder, epoch int64) error {
	if err := to.check(); err != nil {
		return fmt.Errorf("ledger %s: %w", l.Meta.Name, err)
	}
	for _, r := range ranges {
		if !inside(r, l.Part) {
			return fmt.Errorf("ledger %s: %s is not within the part %s", l.Meta.Name, FormatRange(r), FormatRange(l.Part))
		}
		if i := l.from(r.From()); i < len(l.runs) && l.runs[i].Overlaps(r) {
			return fmt.Errorf("ledger %s: %s %w: %s", l.Meta.Name, FormatRange(r), ErrHeld, FormatRange(l.runs[i].IPRange))
		}
	}
	for _, r := range ranges {
		at := l.from(r.From())
		l.runs = slices.Insert(l.runs, at, Run{IPRange: r, Holder: to, Epoch: epoch})
		l.join(at, at+1)
	}
	l.Epoch = max(l.Epoch, epoch)
	return nil
}

// Take makes addresses free, whoever holds them.
func (l *Ledger) Take(set *netipx.IPSet) {
	l.Change(set.Ranges(), func(*Run) bool { return false })
}

// Park leaves pinned addresses to their identity alone, on no node, and makes
// others free.
func (l *Ledger) Park(set *netipx.IPSet) {
	l.Change(set.Ranges(), func(r *Run) bool {
		r.Node, r.Target, r.Doubtful = "", "", false
		return r.Identity != ""
	})
}

// Change has a function change the runs within ranges, which are cut where they
// reach beyond: what it returns false for is free. It may change anything but
// the addresses. Change says whether there was anything within the ranges.
func (l *Ledger) Change(ranges []netipx.IPRange, change func(*Run) bool) bool {
	any := false
	for _, r := range ranges {
		first := l.from(r.From())
		end := first
		var now []Run
		for ; end < len(l.runs) && l.runs[end].Overlaps(r); end++ {
			now = appendChanged(now, l.runs[end], r, change)
		}
		if end > first {
			any = true
			l.runs = slices.Replace(l.runs, first, end, now...)
			l.join(first, first+len(now))
		}
	}
	return any
}

// appendChanged adds what becomes of a run of which a range is changed.
func appendChanged(now []Run, run Run, r netipx.IPRange, change func(*Run) bool) []Run {
	within := run
	within.IPRange = netipx.IPRangeFrom(later(run.From(), r.From()), earlier(run.To(), r.To()))
	if run.From().Less(within.From()) {
		before := run
		before.IPRange = netipx.IPRangeFrom(run.From(), within.From().Prev())
		now = append(now, before)
	}
	rest := within.To()
	if change(&within) {
		now = append(now, within)
	}
	if rest.Less(run.To()) {
		run.IPRange = netipx.IPRangeFrom(rest.Next(), run.To())
		now = append(now, run)
	}
	return now
}

// join joins the runs from one before first to one behind end where they are alike.
func (l *Ledger) join(first, end int) {
	first, end = max(first-1, 0), min(end+1, len(l.runs))
	if end-first < 2 {
		return
	}
	out := first
	for i := first + 1; i < end; i++ {
		if l.runs[out].joins(l.runs[i]) {
			l.runs[out].IPRange = netipx.IPRangeFrom(l.runs[out].From(), l.runs[i].To())
			continue
		}
		out++
		l.runs[out] = l.runs[i]
	}
	l.runs = slices.Delete(l.runs, out+1, end)
}
