package selection

import "railhead/internal/ipam/holder"

// Request is what a node's holder is asked for the pod. It is good only of a
// Selection without an error.
func (s *Selection) Request(key holder.Key) holder.Request {
	r := holder.Request{Key: key, Pod: s.Pod, Identity: s.Identity.String(), Migration: s.Migration}
	for i := range s.NICs {
		n := &s.NICs[i]
		nic := holder.NIC{Interface: n.Interface}
		for j := range n.Families {
			nic.Choices = append(nic.Choices, n.Families[j].choice())
		}
		r.NICs = append(r.NICs, nic)
	}
	return r
}

func (f *Family) choice() holder.Choice {
	c := holder.Choice{Exact: f.Exact}
	for i := range f.Pools {
		c.Pools = append(c.Pools, holder.PoolRef{Name: f.Pools[i].Name, Subnet: f.Pools[i].Subnet})
	}
	return c
}
