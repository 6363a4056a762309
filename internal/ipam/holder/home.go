package holder

import "slices"

// Home is the request with the pools first that its interfaces had addresses of,
// as far as they are still candidates: an identity keeps what it has. It is for
// what was published of the identity; what the lease shows the holder knows.
func (r Request) Home(had []Assigned) Request {
	return r.reordered(func(nic string, c *Choice) int {
		return slices.IndexFunc(c.Pools, func(ref PoolRef) bool {
			return slices.ContainsFunc(had, func(a Assigned) bool {
				return a.Interface == nic && a.Pool == ref.Name && ref.Subnet.Contains(a.Prefix.Addr())
			})
		})
	})
}

// homed puts the pools first that an identity has pinned addresses of on this
// node. A pod that waits goes on waiting for those that were put first when it
// began, while it asks for the same: addresses that are given back and come again
// are shown to nobody meanwhile.
func (h *Holder) homed(r Request) Request {
	if r.Identity == "" {
		return r
	}
	left := h.pinned(r.Identity)
	if w := h.waits[r.PodUID]; w != nil && len(left) == 0 && sameNICs(w.given, r.NICs) {
		r.NICs = w.NICs
		return r
	}
	return r.reordered(func(_ string, c *Choice) int {
		at := slices.IndexFunc(c.Pools, func(ref PoolRef) bool { return left[ref.Name] > 0 })
		if at >= 0 {
			left[c.Pools[at].Name]--
		}
		return at
	})
}

// pinned is how many addresses of each pool an identity has here.
func (h *Holder) pinned(identity string) map[string]int {
	has := map[string]int{}
	for name, p := range h.pools {
		for _, s := range p.slots {
			if s.granted() && s.identity == identity {
				has[name]++
			}
		}
	}
	return has
}

// reordered is the request with one pool of each choice first; below 0: as it is.
// The request itself stays as it was.
func (r Request) reordered(first func(nic string, c *Choice) int) Request {
	nics := slices.Clone(r.NICs)
	for i := range nics {
		nics[i].Choices = slices.Clone(nics[i].Choices)
		for j := range nics[i].Choices {
			c := &nics[i].Choices[j]
			if at := first(nics[i].Interface, c); at > 0 {
				c.Pools = slices.Concat(c.Pools[at:at+1], c.Pools[:at], c.Pools[at+1:])
			}
		}
	}
	r.NICs = nics
	return r
}
