package driver

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"railhead/hack/cluster/fabric"
)

// Cut takes the carrier of a node's eth0 or rail away, which is called by its
// netdev, or a rail by its number.
func (c *Cluster) Cut(node, link string) error {
	l, err := c.plan.Link(node, link)
	if err != nil {
		return err
	}
	return c.fabric.Cut(l)
}

// Limit lets no more through a link than so many bits a second, each way:
// "100M", "2G".
func (c *Cluster) Limit(node, link, rate string) error {
	l, err := c.plan.Link(node, link)
	if err != nil {
		return err
	}
	bits, err := parseRate(rate)
	if err != nil {
		return err
	}
	return c.fabric.Limit(l, bits)
}

// maxRate is a petabit a second: no link needs more, and sums of it fit.
const maxRate = 1e15

// parseRate reads bits a second.
func parseRate(rate string) (uint64, error) {
	wrong := fmt.Errorf("rate %q: want bits a second, as in 100M or 2G", rate)
	// ParseQuantity writes all digits of an exponent out, which never ends for a large one.
	if e := strings.LastIndexAny(rate, "eE"); e >= 0 && len(rate)-e > len("e+15") {
		return 0, wrong
	}
	bits, err := resource.ParseQuantity(rate)
	if err != nil || bits.Sign() <= 0 || bits.CmpInt64(maxRate) > 0 {
		return 0, wrong
	}
	return uint64(bits.Value()), nil
}

// Mend undoes Cut and Limit.
func (c *Cluster) Mend(node, link string) error {
	l, err := c.plan.Link(node, link)
	if err != nil {
		return err
	}
	return errors.Join(c.fabric.Mend(l), c.fabric.Unlimit(l))
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
	case s.Cut && s.BitsPerSecond > 0:
		return "cut, " + limitOf(s)
	case s.Cut:
		return "cut"
	case !s.Carrier:
		return "without carrier"
	case s.BitsPerSecond > 0:
		return limitOf(s)
	}
	return ""
}

func limitOf(s fabric.State) string {
	return fmt.Sprintf("limited to %s bit/s", resource.NewQuantity(int64(s.BitsPerSecond), resource.DecimalSI))
}
