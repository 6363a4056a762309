package inventory

import (
	"maps"
	"strings"

	"railhead/internal/kernel/rtnl"
)

// Changes says what may differ from facts that were read earlier.
type Changes struct {
	All   bool            // anything may
	Links map[int]bool    // links, by index, whose settings or addresses changed
	Names map[string]bool // RDMA devices, PCI addresses, auxiliary devices, netdevs and classes of character devices that came, went or changed
}

// everything is the change that leaves nothing as it was.
func everything() Changes { return Changes{All: true} }

// isEmpty tells whether nothing is known to have changed.
func (c *Changes) isEmpty() bool { return !c.All && len(c.Links) == 0 && len(c.Names) == 0 }

// linkChange is a change of the link with an index.
func linkChange(index int) Changes {
	return Changes{Links: map[int]bool{index: true}}
}

// linksChange is a change of each of the links.
func linksChange(links []rtnl.Link) Changes {
	c := Changes{Links: make(map[int]bool, len(links))}
	for i := range links {
		c.Links[links[i].Index] = true
	}
	return c
}

// nameChange is a change of one object.
func nameChange(name string) Changes {
	return Changes{Names: map[string]bool{name: true}}
}

// pathChange is a change of the object at a sysfs path. It touches every
// object that the path goes through, because what happens below a PCI function
// may show in its own attributes.
func pathChange(devPath string) Changes {
	c := Changes{Names: map[string]bool{}}
	for name := range strings.SplitSeq(strings.Trim(devPath, "/"), "/") {
		c.Names[name] = true
	}
	return c
}

// merge adds other to c.
func (c *Changes) merge(other Changes) {
	c.All = c.All || other.All
	if c.Links == nil {
		c.Links = map[int]bool{}
	}
	if c.Names == nil {
		c.Names = map[string]bool{}
	}
	maps.Copy(c.Links, other.Links)
	maps.Copy(c.Names, other.Names)
}
