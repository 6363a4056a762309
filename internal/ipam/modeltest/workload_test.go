package modeltest

import (
	"fmt"

	"railhead/internal/ipam/holder"
)

type statefulSet struct {
	name     string
	replicas int
	shape    []holder.NIC
}

type vm struct {
	name string
	nics []holder.NIC
}

func (c *cluster) choice(pools ...string) holder.Choice {
	var ch holder.Choice
	for _, n := range pools {
		if p := c.w.api.pools.live[n]; p != nil {
			ch.Pools = append(ch.Pools, p.ref())
		}
	}
	return ch
}

// shape is the interfaces of a pod, of some kind.
func (c *cluster) shape() []holder.NIC {
	w := c.w
	switch n := w.rng.IntN(10); {
	case n < 4:
		return c.overRails(1 + w.rng.IntN(len(c.rails)))
	case n < 5: // two of one pool
		return []holder.NIC{{Interface: "net1", Choices: []holder.Choice{c.choice(c.solo)}}, {Interface: "net2", Choices: []holder.Choice{c.choice(c.solo)}}}
	case n < 7: // a second pool to fall back to
		return []holder.NIC{{Interface: "net1", Choices: []holder.Choice{c.choice(c.other, c.solo)}}}
	case n < 9: // dual stack
		return []holder.NIC{{Interface: "net1", Choices: []holder.Choice{c.choice(c.solo), c.choice(c.six)}}}
	}
	return append(c.overRails(1), holder.NIC{Interface: "eth9", Choices: []holder.Choice{c.choice(c.six)}})
}

func (c *cluster) overRails(n int) []holder.NIC {
	var nics []holder.NIC
	for i := range n {
		nics = append(nics, holder.NIC{Interface: fmt.Sprintf("net%d", i+1), Choices: []holder.Choice{c.choice(c.rails[i])}})
	}
	return nics
}

func valid(nics []holder.NIC) bool {
	for _, n := range nics {
		for _, ch := range n.Choices {
			if len(ch.Pools) == 0 {
				return false
			}
		}
	}
	return len(nics) > 0
}

// exact asks for one address.
func (c *cluster) exact() []holder.NIC {
	ch := c.choice(c.rails[0])
	if len(ch.Pools) == 0 {
		return nil
	}
	ranges := c.w.api.pools.live[c.rails[0]].addresses.Ranges()
	if len(ranges) == 0 {
		return nil
	}
	addr := ranges[0].From()
	for range c.w.rng.IntN(6) {
		if ranges[0].Contains(addr.Next()) {
			addr = addr.Next()
		}
	}
	ch.Exact = addr
	c.w.seen("exact address asked")
	return []holder.NIC{{Interface: "net1", Choices: []holder.Choice{ch}}}
}

func (s *statefulSet) identity(i int) string { return fmt.Sprintf("StatefulSet/ns/%s/%d", s.name, i) }

// controlSets makes missing pods of StatefulSets, and scales them now and then.
func (c *cluster) controlSets(m *machine) {
	for _, s := range c.sets {
		if c.w.rarely(20) {
			s.replicas = c.w.rng.IntN(4)
			for i := s.replicas; i < 4; i++ {
				c.unpin(s.identity(i))
			}
			c.w.note("%s scaled to %d", s.name, s.replicas)
		}
		for i := range 4 {
			n := name("ns", fmt.Sprintf("%s-%d", s.name, i))
			p := c.w.api.pods.live[n.String()]
			switch {
			case i >= s.replicas && p != nil && !p.ending:
				c.remove(p, false)
			case i < s.replicas && p == nil:
				c.addPod(n, m, s.identity(i), false, s.shape)
				return
			}
		}
	}
}

// migrate starts a virtual machine, moves it, or ends one of its pods.
func (c *cluster) migrate(m *machine) {
	if len(c.vms) == 0 {
		return
	}
	v := c.vms[0]
	identity := "VirtualMachine/ns/" + v.name
	var pods []*podObject
	for _, n := range c.w.api.pods.names() {
		if p := c.w.api.pods.live[n]; p.identity == identity && !p.ending {
			pods = append(pods, p)
		}
	}
	c.made++
	n := name("ns", fmt.Sprintf("%s-%d", v.name, c.made))
	switch len(pods) {
	case 0:
		c.addPod(n, m, identity, false, v.nics)
	case 1:
		if pods[0].nodeUID != m.uid {
			c.w.seen("VM migrates")
			c.addPod(n, m, identity, true, v.nics)
		}
	default:
		c.remove(pods[c.w.rng.IntN(len(pods))], false)
	}
}
