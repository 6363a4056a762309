package policy

import "go4.org/netipx"

// Used are the addresses of a pool that pods have or nodes hold for them: those
// of Taken and of Held. The set is never nil.
func (c *Catalog) Used(pool string) *netipx.IPSet {
	var build netipx.IPSetBuilder
	build.AddSet(c.Taken(pool))
	build.AddSet(c.Held(pool))
	return built(&build)
}
