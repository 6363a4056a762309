package cniserver

import (
	"context"
	"errors"
	"net/netip"
	"os"

	"railhead/internal/attach/probe"
	"railhead/internal/kernel/rtnl"
)

// linkBelow is the link of the interface that a call is about, which its plugin has made
// before it asks for addresses; without an index where it makes it later, or where there
// is none, as of a device that a program has for itself.
func linkBelow(client *rtnl.Client, name string) (rtnl.Link, error) {
	link, err := client.LinkByName(name)
	if errors.Is(err, os.ErrNotExist) {
		return rtnl.Link{}, nil
	}
	return link, err
}

// probeBelow asks whether others have addresses that an interface is to get. Plugins ask
// for addresses before they set its link up: it is up while others are asked, and then as
// it was. That it was down is recorded nowhere: an agent that dies in between leaves it up,
// without an address, and the plugin whose call fails with that takes it away, by its DEL
// at the latest, as one whose call goes on sets it up next.
func (s *Server) probeBelow(ctx context.Context, a *attempt, client *rtnl.Client, link rtnl.Link, addresses []netip.Prefix) error {
	if link.Index == 0 {
		return nil
	}
	a.targets = []probe.Target{s.targetBelow(a, link, addresses)}
	if link.Up || !asks(a.targets) {
		return s.probe(ctx, a)
	}
	if err := errors.Join(client.Do(rtnl.LinkSet{Index: link.Index, Up: new(true)})...); err != nil {
		return err
	}
	err := s.probe(ctx, a)
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
