package plugin

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/attach"
	"railhead/internal/attach/routing"
	"railhead/internal/npwg"
)

// Input is all that an interface depends on.
type Input struct {
	Chain    npwg.Chain
	Selected npwg.Selected
	Rail     int // of no meaning for the default network's interface
	// Cluster and Status are of the SpiderCoordinator "default", empty without one.
	Cluster v2beta1.CoordinatorSpec
	Status  v2beta1.CoordinatorStatus
	// DefaultRouteNIC is the pod's annotation ipam.spidernet.io/default-route-nic, "" without one.
	DefaultRouteNIC string
	DeviceID        string // of the device to attach, or ""
}

// Interface is what the native plugins of a chain make, without addresses,
// gateways and routes: those are the IPAM's. Where another's plugin makes the
// interface, its MAC address is that plugin's to tell, and what tunes it is run
// behind it, so that only the coordinator's options are here. The error joins all
// that is wrong, as
//
//	network ns/name: plugin macvlan: field mode: "foo": want bridge, private, vepa or passthru
func Interface(in Input) (attach.Interface, error) {
	parts, err := Split(in.Chain)
	if err != nil {
		return attach.Interface{}, in.wrap(err)
	}
	made := attach.Interface{Interface: routing.Interface{
		Name: in.Selected.Interface, Rail: in.Rail, IsDefaultNetwork: in.Selected.Default, Foreign: parts.Main < 0,
	}}
	var errs []error
	b := builder{in: in, made: &made}
	for _, i := range parts.Native {
		if err := b.read(i); err != nil {
			errs = append(errs, prefixed("plugin "+in.Chain.Plugins[i].Type, err))
		}
	}
	if err := errors.Join(append(errs, b.finish())...); err != nil {
		return attach.Interface{}, in.wrap(err)
	}
	return made, nil
}

// wrap names the network in each line of an error.
func (in Input) wrap(err error) error { return prefixed("network "+in.Selected.String(), err) }

// prefixed names a place in each of the errors that are joined.
func prefixed(place string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s: %w", place, err)
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, prefixed(place, e))
	}
	return errors.Join(errs...)
}

// builder fuses the plugins of a chain, which are read in order.
type builder struct {
	in     Input
	made   *attach.Interface
	ifacer *attach.Parent   // what the ifacer in front makes
	main   net.HardwareAddr // asked of the main plugin
	tuned  net.HardwareAddr // asked of tuning, behind it
}

// read adds what the chain's i-th plugin says.
func (b *builder) read(i int) error {
	config, err := b.in.Chain.PluginConfig(i, b.in.Selected, npwg.Call{DeviceID: b.in.DeviceID})
	if err != nil {
		return err
	}
	switch b.in.Chain.Plugins[i].Type {
	case typeIfacer:
		b.ifacer, err = Ifacer(config)
	case typeMacvlan:
		err = b.macvlan(config)
	case typeIPVLAN:
		err = b.ipvlan(config)
	case typeVLAN:
		err = b.vlan(config)
	case typeHostDevice:
		err = b.hostDevice(config)
	case typeTuning:
		err = b.tuning(config)
	case typeCoordinator:
		err = b.coordinator(i)
	}
	return err
}

// coordinator merges what pod, network and cluster say. It is given what was
// written: the pod's arguments are not for it.
func (b *builder) coordinator(i int) error {
	options, err := routing.Merge(routing.Sources{
		Cluster: b.in.Cluster, Status: b.in.Status,
		Element: b.in.Chain.Plugins[i].Config, DefaultRouteNIC: b.in.DefaultRouteNIC,
	})
	if err != nil {
		return err
	}
	b.made.Coordinator = &options
	return nil
}

// finish decides what several plugins say something of.
func (b *builder) finish() error {
	mac := b.tuned // it comes after the main one
	if mac == nil {
		mac = b.main
	}
	if mac != nil && b.made.SharesMAC {
		kind := strings.TrimSpace(string(b.made.Link.Kind) + " " + b.made.Link.Mode)
		return fmt.Errorf("MAC address %s: an interface of type %s has that of its master: want none", mac, kind)
	}
	b.made.MAC = mac
	if b.made.Foreign {
		return nil
	}
	parent := b.made.Link.Parent
	switch {
	case len(parent.Members) > 0:
		b.made.Masters = parent.Members
	case parent.Name != "":
		b.made.Masters = []string{parent.Name}
	case b.made.Link.Device.Name != "":
		b.made.Masters = []string{b.made.Link.Device.Name}
	}
	return nil
}
