package counters

import "slices"

// Narrow is what a counter that is narrower than 64 bits in the kernel has come
// to, where that is another number than the kernel's: it has wrapped, or went
// back.
type Narrow struct {
	Port   string `json:"port,omitempty"` // its number, and the netdev of a bond behind it: "1", "1 eth0"; empty for a whole device
	Source string `json:"source"`         // as Origin has it
	Key    string `json:"key"`            // the kernel's name
	Last   uint64 `json:"last"`           // the kernel's number when it was read last
	Total  uint64 `json:"total"`          // what that was continued to; more than Last
}

// Narrow appends to dst the counters that another Reader of the same function
// would have to begin at more than the kernel shows. There are few, as a rule
// none.
func (r *Reader) Narrow(dst []Narrow) []Narrow {
	for _, g := range r.groups {
		if g.carries {
			dst = g.narrow(dst, r.portOf(g))
		}
	}
	return append(dst, r.kept...)
}

// Continue has counters go on from where another Reader of the same function
// left them, before the first Read. The kernel may have counted on meanwhile, or
// from zero again; see [unwrap.resume].
func (r *Reader) Continue(kept []Narrow) { r.kept = slices.Clone(kept) }

// WentBack returns how often a counter was less than before and had not wrapped,
// so that what it had counted since is not known, and not told.
func (r *Reader) WentBack() uint64 { return r.wentBack }

func (g *group) narrow(dst []Narrow, port string) []Narrow {
	for i := range g.inputs {
		if g.inputs[i].unwrap < 0 {
			continue
		}
		if u := &g.unwraps[g.inputs[i].unwrap]; u.carries() {
			dst = append(dst, Narrow{Port: port, Source: g.source.String(), Key: g.names[i], Last: u.last, Total: u.total})
		}
	}
	return dst
}

// portOf names what the counters of a group are of. Where a netdev is called
// something else in another namespace, it still is the same.
func (r *Reader) portOf(g *group) string {
	port := g.port.label("port")
	if r.device.Bond != nil && g.port.label("netdev") != "" {
		port += " " + g.port.label("netdev")
	}
	return port
}

// resumed takes what a counter that wraps had come to out of what the Reader
// continues; the zero unwrap for one that is not among them.
func (r *Reader) resumed(g *group, name string) unwrap {
	if len(r.kept) == 0 {
		return unwrap{}
	}
	port, source := r.portOf(g), g.source.String()
	i := slices.IndexFunc(r.kept, func(n Narrow) bool { return n.Key == name && n.Port == port && n.Source == source })
	if i < 0 {
		return unwrap{}
	}
	u := unwrap{last: r.kept[i].Last, total: r.kept[i].Total, begun: true, resumes: true}
	r.kept = slices.Delete(r.kept, i, i+1)
	return u
}

// wraps tells whether a counter begins again at zero when it is full.
func (c *counter) wraps() bool { return c.kind == Counter && !c.saturates && c.bits > 0 }
