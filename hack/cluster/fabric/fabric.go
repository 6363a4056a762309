// Package fabric connects the machines of a cluster as a plan says: the
// bridges that stand for its switches, the cables to the nodes, addresses and
// routes. It cuts cables and mends them.
//
// It works in the network namespaces of machines and never in the host's. It
// keeps none of them open between calls, so that a machine that ends takes its
// links with it.
package fabric

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"railhead/hack/cluster/plan"
	"railhead/internal/kernel/netns"
)

// Fabric is the network of one cluster. Calls for different nodes may be made
// at the same time. Each needs CAP_NET_ADMIN in the machines it works in and
// CAP_SYS_ADMIN to enter them.
type Fabric struct {
	plan *plan.Cluster
	open func(machine string) (*netns.NS, error)
}

// New is the fabric of a planned cluster. It opens the namespaces of machines
// (plan.Fabric, a node's name) by a function, as often as it needs them, since
// a machine that booted anew has another; it closes what it opened.
func New(c *plan.Cluster, open func(machine string) (*netns.NS, error)) *Fabric {
	return &Fabric{plan: c, open: open}
}

// Sysctls are the settings that each machine is to have before anything else
// is done to its network, by their paths below /proc/sys. All machines
// forward, take what comes by whichever interface, and use IPv6 addresses at
// once: nobody else could have them.
func Sysctls(c *plan.Cluster) map[string]string {
	settings := map[string]string{}
	if c.Options.IPv4 {
		settings["net/ipv4/ip_forward"] = "1"
		settings["net/ipv4/conf/all/rp_filter"] = "0"
		settings["net/ipv4/conf/default/rp_filter"] = "0"
	}
	if c.Options.IPv6 {
		for _, scope := range []string{"all", "default"} {
			settings["net/ipv6/conf/"+scope+"/disable_ipv6"] = "0"
			settings["net/ipv6/conf/"+scope+"/forwarding"] = "1"
			settings["net/ipv6/conf/"+scope+"/accept_dad"] = "0"
			settings["net/ipv6/conf/"+scope+"/accept_ra"] = "0"
		}
	}
	return settings
}

// Build makes the switches: a bridge for the nodes, one a rail, all with their
// gateways, and the API server's Service addresses on lo. What is there
// already stays.
func (f *Fabric) Build() error {
	return f.in(plan.Fabric, func(m machine) error {
		errs := []error{m.loopback(f.plan.API), m.bridge(plan.Bridge, f.plan.MAC, plan.HostMTU, f.plan.Host)}
		for _, r := range f.plan.Rails {
			errs = append(errs, m.bridge(r.Bridge, r.MAC, plan.RailMTU, r.Gateways))
		}
		return errors.Join(errs...)
	})
}

// in runs fn with a machine's namespace open.
func (f *Fabric) in(name string, fn func(machine) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("network of %s: %w", name, err)
		}
	}()
	ns, err := f.open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ns.Close()) }()
	m := machine{ns: ns}
	// The handle's sockets are of the namespace in which they are made.
	err = ns.Do(func() (err error) {
		m.Handle, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return err
	}
	defer m.Close()
	return fn(m)
}

// loopback sets lo up and gives it addresses of services.
func (m machine) loopback(services []netip.Addr) error {
	lo, err := m.link("lo")
	if err != nil {
		return err
	}
	if err := m.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	var errs []error
	for _, a := range services {
		errs = append(errs, m.address(lo, netip.PrefixFrom(a, a.BitLen())))
	}
	return errors.Join(errs...)
}
