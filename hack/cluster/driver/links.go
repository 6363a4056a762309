package driver

import "railhead/hack/cluster/fabric"

// Cut takes the carrier of a node's eth0 or rail away, which is called by its
// netdev, or a rail by its number.
func (c *Cluster) Cut(node, link string) error {
	l, err := c.plan.Link(node, link)
	if err != nil {
		return err
	}
	return c.fabric.Cut(l)
}

// Mend undoes Cut.
func (c *Cluster) Mend(node, link string) error {
	l, err := c.plan.Link(node, link)
	if err != nil {
		return err
	}
	return c.fabric.Mend(l)
}

// linkFaults says what is wrong with the links of each node.
func (c *Cluster) linkFaults() (map[string][]string, error) {
	states, err := c.fabric.States()
	faults := map[string][]string{}
	for _, s := range states {
		if what := faultOf(s); what != "" {
			faults[s.Link.Node] = append(faults[s.Link.Node], s.Link.Netdev+" "+what)
		}
	}
	return faults, err
}

func faultOf(s fabric.State) string {
	switch {
	case !s.Connected:
		return "not connected"
	case s.Cut:
		return "cut"
	case !s.Carrier:
		return "without carrier"
	}
	return ""
}
