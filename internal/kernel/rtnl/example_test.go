package rtnl_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"railhead/internal/kernel/rtnl"
)

func ExampleClient_LinkByName() {
	c, err := rtnl.Dial(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()

	_, err = c.LinkByName("rail-of-nobody")
	fmt.Println(err)
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output:
	// link "rail-of-nobody": RTM_GETLINK: no such device
	// true
}

// Who keeps a picture of a namespace subscribes, reads the lists, applies the
// events, and reads the lists again when events were lost.
func ExampleSubscribe() {
	s, err := rtnl.Subscribe(nil, rtnl.Links, rtnl.Addresses)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()

	readAll := func() {} // Client.Links, Client.Addresses
	apply := func(rtnl.Event) {}

	readAll()
	for {
		events, err := s.Receive()
		switch {
		case errors.Is(err, fs.ErrClosed):
			return
		case errors.Is(err, rtnl.ErrOverrun):
			readAll()
		case err != nil:
			fmt.Println(err) // of what could not be decoded
		}
		for _, e := range events {
			apply(e)
		}
	}
}

// A pod gets an interface, an address, a route and a rule: the link is made by a
// client of the node's namespace, which has what it is on top of, and the rest by
// one of the pod's, of which ns is a descriptor.
func ExampleClient_Do() {
	attach := func(node, pod *rtnl.Client, ns, parent int) error {
		const index = 1000 // a number of ours, so that nobody has to look for it
		address := netip.MustParsePrefix("172.16.11.2/24")
		err := errors.Join(node.Do(rtnl.LinkAdd{
			Name: "net1", Kind: "macvlan", Mode: "bridge", Parent: parent, Index: index, NetNS: ns, Up: true,
		})...)
		if err != nil {
			return err // add macvlan net1 on link 5 in another network namespace: RTM_NEWLINK: file exists
		}
		return errors.Join(pod.Do(
			rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: index, Prefix: address}},
			rtnl.RouteAdd{Route: rtnl.Route{Dst: address.Masked(), LinkIndex: index, Src: address.Addr(), Table: 100}},
			rtnl.RuleAdd{Rule: rtnl.Rule{Src: netip.PrefixFrom(address.Addr(), 32), Table: 100, Priority: 1000}},
		)...)
	}
	_ = attach
}
