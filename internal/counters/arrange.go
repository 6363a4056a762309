package counters

import (
	"cmp"
	"slices"
)

// arrange makes inputs and cells of names. Counters that were there before go
// on where they were. Of names that come twice the first counts.
func (g *group) arrange(r *Reader, names []string) {
	before := map[string]unwrap{}
	for i, name := range g.names {
		if u := g.inputs[i].unwrap; u >= 0 {
			before[name] = g.unwraps[u]
		}
	}
	for _, s := range g.cells {
		if s.rank == g.rank {
			s.rank = 0
		}
	}
	g.names, g.inputs, g.unwraps, g.feeds, g.cells = names, make([]input, len(names)), nil, nil, nil
	index, feeds := map[*slot]int32{}, make([][]int32, len(names))
	for i, name := range names {
		g.inputs[i] = input{unwrap: -1}
		if slices.Contains(names[:i], name) || g.accept != nil && !g.accept(name) {
			continue
		}
		c := r.counter(g.source, name)
		if c == nil {
			continue
		}
		g.inputs[i].counter = c
		if c.wraps() {
			g.inputs[i].unwrap = g.resume(r, before, name)
		}
		if c.saturates {
			feeds[i] = []int32{g.cell(index, c, output{family: known.byName["rdma_port_saturated"], values: values{c.key}})}
		}
	}
	g.connect(index, feeds)
	g.unwraps, g.cells = slices.Clone(g.unwraps), slices.Clone(g.cells) // no larger than they must be
}

// resume is the index of the unwrap of a counter, which goes on from before, or
// from where another Reader was.
func (g *group) resume(r *Reader, before map[string]unwrap, name string) int32 {
	u, ok := before[name]
	if !ok {
		u = r.resumed(g, name)
	}
	g.unwraps = append(g.unwraps, u)
	return int32(len(g.unwraps) - 1)
}

// connect ties inputs to cells, behind those that they feed already. Second
// choices come last, and only where nothing else feeds their family: mlx5 counts
// discards on transmission for the port alone, and bnxt_re calls what it counts
// otherwise in its own package.
func (g *group) connect(index map[*slot]int32, feeds [][]int32) {
	fed := map[*Family]bool{}
	taken := map[output]bool{}
	for _, second := range []bool{false, true} {
		for i := range g.inputs {
			in := &g.inputs[i]
			if in.counter == nil {
				continue
			}
			for _, o := range in.counter.outputs {
				if o.second != second || second && (fed[o.family] || taken[o]) || g.plain && o.isTraffic() {
					continue
				}
				fed[o.family] = fed[o.family] || !second
				taken[o] = true
				feeds[i] = append(feeds[i], g.cell(index, in.counter, o))
			}
		}
	}
	g.feeds = slices.Concat(feeds...)
	first := 0
	for i := range g.inputs {
		g.inputs[i].first = int32(first)
		first += len(feeds[i])
	}
}

// factor is what a value is multiplied with, so that sources which count in
// different units can stand in for each other: words of four bytes for bytes.
func (c *counter) factor() uint64 {
	if c.scale > 1 {
		return uint64(c.scale)
	}
	return 1
}

// fraction is what is left of the scale, which makes no whole numbers.
func (c *counter) fraction() float64 {
	if c.scale > 1 {
		return 1
	}
	return cmp.Or(c.scale, 1)
}

// isTraffic tells whether an output is traffic under the name for all drivers.
func (o output) isTraffic() bool { return o.family.Tier == Traffic && o.family.Pod != "" }

// cell is the index of the cell of an output, which is made where there is none.
func (g *group) cell(index map[*slot]int32, c *counter, o output) int32 {
	where := g.port
	if c.scope == WholeDevice {
		where = g.device
	}
	s := where.slot(o.family, o.values, c.fraction())
	if i, ok := index[s]; ok {
		return i
	}
	i := int32(len(g.cells))
	index[s] = i
	g.cells = append(g.cells, s)
	return i
}
