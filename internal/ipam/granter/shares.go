package granter

import "railhead/internal/ipam"

// index is what is asked of one ledger.
type index struct {
	of          *ipam.Ledger
	version     int64
	nodes       []string // in order of their first address
	byNode      map[string][]ipam.Run
	pinned      []ipam.Run
	quarantined []ipam.Run
	counts      *counts
}

// indexed is the index of the ledger as this round makes it.
func (b *book) indexed() *index {
	if b.index != nil && b.index.version == b.version {
		return b.index
	}
	x := &index{of: b.now(), version: b.version, byNode: map[string][]ipam.Run{}}
	b.index = x
	if x.of == nil || b.state != known {
		return x
	}
	for run := range x.of.Runs() {
		x.add(run.Node, run)
		x.add(run.Target, run)
		if run.Identity != "" {
			x.pinned = append(x.pinned, run)
		}
		if run.Quarantine != nil {
			x.quarantined = append(x.quarantined, run)
		}
	}
	return x
}

func (x *index) add(node string, run ipam.Run) {
	if node == "" {
		return
	}
	if _, ok := x.byNode[node]; !ok {
		x.nodes = append(x.nodes, node)
	}
	x.byNode[node] = append(x.byNode[node], run)
}

// share is what a node or an identity has of one ledger.
type share struct {
	book *book
	runs []ipam.Run
}

// shares is who has what, over all ledgers that are known.
type shares struct {
	version    int64 // of the latest change
	count      int
	books      []*book
	unknown    []*book // of which nothing can be said now
	rebuilding []*book
	byNode     map[string][]share // in order of pools and parts
	byIdentity map[string][]share
}

// now is who has what as this round makes it.
func (g *Granter) now() *shares {
	if g.shares != nil && g.shares.version == g.clock && g.shares.count == len(g.books) {
		return g.shares
	}
	s := &shares{
		version: g.clock, count: len(g.books), books: g.sorted(),
		byNode: map[string][]share{}, byIdentity: map[string][]share{},
	}
	for _, b := range s.books {
		if b.state != known {
			s.unknown = append(s.unknown, b)
		} else if b.rebuilding() {
			s.rebuilding = append(s.rebuilding, b)
		}
		x := b.indexed()
		for _, node := range x.nodes {
			s.byNode[node] = append(s.byNode[node], share{b, x.byNode[node]})
		}
		for i, run := range x.pinned {
			s.byIdentity[run.Identity] = append(s.byIdentity[run.Identity], share{b, x.pinned[i : i+1]})
		}
	}
	g.shares = s
	return s
}

// of is what a node has of one pool.
func of(all []share, pool string) []share {
	first := 0
	for first < len(all) && all[first].book.pool != pool {
		first++
	}
	end := first
	for end < len(all) && all[end].book.pool == pool {
		end++
	}
	return all[first:end]
}

// unpinned is how many addresses of shares are not pinned.
func unpinned(all []share) int64 {
	var n int64
	for _, s := range all {
		for i := range s.runs {
			if s.runs[i].Identity == "" {
				n += ipam.Size(s.runs[i].IPRange)
			}
		}
	}
	return n
}
