package fabric

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"railhead/hack/cluster/plan"
)

// State is how a cable is, as the fabric sees it.
type State struct {
	Link      plan.Link
	Connected bool // it is plugged into its bridge
	Cut       bool // by [Fabric.Cut]
	Carrier   bool // both ends are up
}

// States tells how all planned cables are, in the plan's order.
func (f *Fabric) States() ([]State, error) {
	var states []State
	err := f.in(plan.Fabric, func(m machine) error {
		ports, err := m.ports()
		if err != nil {
			return err
		}
		for _, n := range f.plan.Nodes {
			for _, l := range f.plan.Links(n) {
				state := ports[l.Port]
				state.Link = l
				states = append(states, state)
			}
		}
		return nil
	})
	return states, err
}

// listAttempts is how often the links of a machine are listed because others, as
// those of tests, came or went meanwhile.
const listAttempts = 100

// ports tells of all links that are in a bridge, by name.
func (m machine) ports() (map[string]State, error) {
	links, err := m.LinkList()
	for n := 1; n < listAttempts && errors.Is(err, netlink.ErrDumpInterrupted); n++ {
		links, err = m.LinkList()
	}
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	ports := map[string]State{}
	for _, link := range links {
		a := link.Attrs()
		if a.MasterIndex == 0 {
			continue
		}
		ports[a.Name] = State{
			Connected: true,
			Cut:       a.RawFlags&unix.IFF_UP == 0,
			Carrier:   a.RawFlags&unix.IFF_LOWER_UP != 0,
		}
	}
	return ports, nil
}
