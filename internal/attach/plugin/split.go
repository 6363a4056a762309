package plugin

import (
	"errors"
	"fmt"
	"slices"

	"railhead/internal/npwg"
)

// Types of plugins that the agent does itself.
const (
	typeMacvlan     = "macvlan"
	typeIPVLAN      = "ipvlan"
	typeVLAN        = "vlan"
	typeHostDevice  = "host-device"
	typeIfacer      = "ifacer"
	typeTuning      = "tuning"
	typeCoordinator = "coordinator"
	typeSpiderpool  = "spiderpool"
)

// Parts are a chain's plugins by who does their work, as places in Chain.Plugins
// and each in the chain's order.
type Parts struct {
	// Main is the plugin that makes the interface; -1: another's, which is After.
	Main int
	// Native are done by the agent at once, Main too.
	Native []int
	// After are run, behind Native: plugins of others, and all that stands on the
	// interface of another's but for its coordinator.
	After []int
}

// Split says which plugins of a chain are done by the agent and which are run.
// The error says why the chain cannot be attached, every reason.
func Split(chain npwg.Chain) (Parts, error) {
	p := Parts{Main: -1}
	foreign := firstIsForeign(chain)
	seen := map[string]bool{}
	var errs []error
	for i, at := range chain.Plugins {
		if foreign && at.Type != typeCoordinator {
			p.After = append(p.After, i)
			errs = append(errs, behindForeign(at))
			continue
		}
		if !at.Native {
			p.After = append(p.After, i)
			continue
		}
		p.Native = append(p.Native, i)
		errs = append(errs, p.place(i, at, seen))
	}
	if !foreign && p.Main < 0 && errors.Join(errs...) == nil {
		errs = append(errs, fmt.Errorf("no plugin makes an interface: want macvlan, ipvlan, vlan, host-device or another's first, in front of tuning and coordinator"))
	}
	return p, errors.Join(errs...)
}

// firstIsForeign says whether another's plugin makes the interface: the first
// one, as what ifacer makes is not the pod's.
func firstIsForeign(chain npwg.Chain) bool {
	i := slices.IndexFunc(chain.Plugins, func(p npwg.Plugin) bool { return p.Type != typeIfacer })
	return i >= 0 && !chain.Plugins[i].Native
}

// behindForeign says what cannot be run on an interface that another's plugin makes.
func behindForeign(p npwg.Plugin) error {
	switch p.Type {
	case typeIfacer:
		return fmt.Errorf("plugin %s: makes the master of macvlan, ipvlan or vlan alone: want one of these behind it, or no %s", p.Type, p.Type)
	case "rdma", typeSpiderpool:
		return notYet(p.Type)
	}
	return nil
}

// place notes a native plugin and says what is wrong with its place.
func (p *Parts) place(i int, at npwg.Plugin, seen map[string]bool) error {
	switch at.Type {
	case typeMacvlan, typeIPVLAN, typeVLAN, typeHostDevice:
		if p.Main >= 0 {
			return fmt.Errorf("plugin %s: another plugin of the chain makes the interface already: want one of the two", at.Type)
		}
		p.Main = i
		return nil
	case typeIfacer:
		if p.Main >= 0 {
			return fmt.Errorf("plugin %s: stands behind the plugin whose master it makes: want it first", at.Type)
		}
	case typeCoordinator:
	case typeTuning:
		return nil // as often as one likes
	default:
		return notYet(at.Type)
	}
	if seen[at.Type] {
		return fmt.Errorf("plugin %s: is in the chain twice: want it once", at.Type)
	}
	seen[at.Type] = true
	return nil
}

// notYet refuses types that are the agent's to do, in a later release.
func notYet(kind string) error {
	if kind == typeSpiderpool {
		return fmt.Errorf("plugin %s: gives addresses and makes nothing: want it as ipam.type of another plugin", kind)
	}
	return fmt.Errorf("plugin %s: this release does not attach it yet: want macvlan, ipvlan, vlan or host-device", kind)
}

// IPAM is what a plugin says of its addresses.
type IPAM struct {
	Type string // "": none, and the interface has no addresses
	// Native says that the agent gives them itself, from the pools of SpiderIPPools;
	// else a plugin of that type is run.
	Native bool
}

// IPAMOf reads the "ipam" of a plugin; package selection reads its pools.
func IPAMOf(p npwg.Plugin) (IPAM, error) {
	head, err := decode[struct {
		IPAM *struct {
			Type string `json:"type"`
		} `json:"ipam"`
	}](p.Config)
	if err != nil {
		return IPAM{}, fmt.Errorf("plugin %s: %w", p.Type, err)
	}
	if head.IPAM == nil {
		return IPAM{}, nil
	}
	return IPAM{Type: head.IPAM.Type, Native: head.IPAM.Type == typeSpiderpool}, nil
}
