package attribution

// coveragePasses is over how many passes coverage is told.
const coveragePasses = 12

// coverage is which share of a device's bytes was some pod's in the last
// passes.
type coverage struct {
	now    share
	passes [coveragePasses]share
	next   int
}

// share is bytes of a device, and those of them that are some pod's.
type share struct{ all, held uint64 }

// endPass begins the next pass.
func (c *coverage) endPass() {
	c.passes[c.next] = c.now
	c.next = (c.next + 1) % len(c.passes)
	c.now = share{}
}

// ratio bounds what pods have over all passes together: counter sets are read
// more seldom than ports, so that one pass has what they counted in several.
func (c *coverage) ratio() (float64, bool) {
	var all, held float64
	for _, s := range c.passes {
		all += float64(s.all)
		held += float64(s.held)
	}
	if all == 0 {
		return 0, false
	}
	return min(held/all, 1), true
}
