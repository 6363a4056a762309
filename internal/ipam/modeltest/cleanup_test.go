package modeltest

import "slices"

// cleanUp is the garbage collection of the control plane: pods of nodes that
// are no more, and endpoints of pods that are no more.
func (c *cluster) cleanUp() {
	for _, n := range c.w.api.pods.names() {
		p := c.w.api.pods.live[n]
		node := c.w.api.nodes.live[p.node]
		if p.nodeUID != "elsewhere" && (node == nil || node.uid != p.nodeUID || node.fenced) {
			c.w.note("pod %s (%s) collected: its node is gone", n, p.uid)
			c.w.api.pods.remove(n)
		}
	}
	for _, n := range c.w.api.uses.names() {
		u := c.w.api.uses.live[n]
		p := c.w.api.pods.live[n]
		if p == nil || len(u.given.Addresses) > 0 && u.given.PodUID != p.uid {
			c.w.api.uses.remove(n)
		}
	}
}

// goneIdentity says that an identity will have no pod again.
func (c *cluster) goneIdentity(identity string) bool {
	for _, n := range c.w.api.pods.live {
		if n.identity == identity {
			return false
		}
	}
	return !slices.ContainsFunc(c.sets, func(s *statefulSet) bool {
		for i := range s.replicas {
			if s.identity(i) == identity {
				return true
			}
		}
		return false
	}) && !slices.ContainsFunc(c.vms, func(v *vm) bool { return "VirtualMachine/ns/"+v.name == identity })
}

func (c *cluster) unpin(identity string) { delete(c.pins, identity) }
