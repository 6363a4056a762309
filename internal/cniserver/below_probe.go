package cniserver

import (
	"context"
	"errors"
	"net/netip"
	"os"

	"railhead/internal/attach/probe"
	"railhead/internal/kernel/rtnl"
)

// probeBelow asks whether others have addresses that an interface is to get, which
// another runtime has made already. Plugins ask for addresses before they set it up:
// it is up while others are asked, and then as it was.
func (s *Server) probeBelow(ctx context.Context, a *attempt, addresses []netip.Prefix) error {
	client, err := rtnl.Dial(&rtnl.Config{NetNS: a.ns.FD()})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all was answered
	link, err := client.LinkByName(a.call.IfName)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it is made later
	}
	if err != nil {
		return err
	}
	a.targets = []probe.Target{s.targetBelow(a, link, addresses)}
	if link.Up || !asks(a.targets) {
		return s.probe(ctx, a)
	}
	if err := errors.Join(client.Do(rtnl.LinkSet{Index: link.Index, Up: new(true)})...); err != nil {
		return err
	}
	err = s.probe(ctx, a)
	return errors.Join(err, errors.Join(client.Do(rtnl.LinkSet{Index: link.Index, Up: new(false)})...))
}

// targetBelow is what is asked on the wire about an interface that another made.
func (s *Server) targetBelow(a *attempt, link rtnl.Link, addresses []netip.Prefix) probe.Target {
	t := probe.Target{
		Interface: link.Name, Index: link.Index, MAC: macOf(link.Address), Parent: masterOf(string(a.call.Config)),
	}
	fresh := false
	for _, prefix := range addresses {
		fresh = fresh || !s.isProven(a, prefix.Addr())
		t.Addresses = append(t.Addresses, probe.Address{Addr: prefix.Addr(), Doubtful: a.given.doubtful(prefix.Addr())})
	}
	t.Detect.Conflict = fresh && s.config.Cluster.Catalog().Config().DetectConflict
	return t
}
