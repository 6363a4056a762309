package driver

import (
	"errors"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/plan"
)

// Status is what a running cluster tells of itself.
type Status struct {
	Dir      Dir          `json:"dir"`
	Began    time.Time    `json:"began"`
	Plan     plan.Cluster `json:"plan"`
	Machines []Machine    `json:"machines"` // the fabric first
}

// Machine is the fabric or a node.
type Machine struct {
	Name      string       `json:"name"`
	PID       int          `json:"pid"` // of its first process; 0 when it is off
	Addresses []string     `json:"addresses"`
	Services  []box.Status `json:"services"`
	Faults    []string     `json:"faults"` // of its links: "enp11s0f0np0 cut"
}

// Status tells how the cluster is.
func (c *Cluster) Status() (*Status, error) {
	faults, err := c.linkFaults()
	if err != nil {
		return nil, err
	}
	s := &Status{Dir: c.dir, Began: c.began, Plan: *c.plan, Machines: make([]Machine, 1+len(c.plan.Nodes))}
	var all errgroup.Group
	all.Go(func() (err error) {
		s.Machines[0], err = c.status(plan.Fabric, c.plan.Host)
		return err
	})
	for i, n := range c.plan.Nodes {
		all.Go(func() (err error) {
			s.Machines[1+i], err = c.status(n.Name, n.Host)
			s.Machines[1+i].Faults = faults[n.Name]
			return err
		})
	}
	return s, all.Wait()
}

func (c *Cluster) status(name string, at []netip.Prefix) (Machine, error) {
	m := Machine{Name: name, Addresses: addresses(at)}
	b, err := c.on(name)
	if errors.Is(err, errOff) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	services, err := b.Services()
	if _, ended := c.on(name); errors.Is(ended, errOff) {
		return m, nil // meanwhile
	}
	m.PID, m.Services = b.PID(), services
	return m, err
}
