package cniserver

import (
	"errors"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rtnl"
)

// dial opens a client of the network namespace at a path.
func dial(path string) (*rtnl.Client, error) {
	ns, err := netns.Open(path)
	if err != nil {
		return nil, err
	}
	client, err := rtnl.Dial(&rtnl.Config{NetNS: ns.FD()})
	return client, errors.Join(err, ns.Close())
}

// peerOf is the node's end of a pod's interface; the zero value where that is no
// pair, or cannot be told.
func peerOf(fd int, name string) routing.Peer {
	inside, err := rtnl.Dial(&rtnl.Config{NetNS: fd})
	if err != nil {
		return routing.Peer{}
	}
	defer func() { _ = inside.Close() }() // it is only asked
	link, err := inside.LinkByName(name)
	if err != nil || link.Kind != "veth" || link.ParentIndex == 0 {
		return routing.Peer{}
	}
	outside, err := rtnl.Dial(nil)
	if err != nil {
		return routing.Peer{}
	}
	defer func() { _ = outside.Close() }() // it is only asked
	peer, err := outside.Link(link.ParentIndex)
	if err != nil || peer.Kind != "veth" {
		return routing.Peer{}
	}
	return routing.Peer{Name: peer.Name, MAC: macOf(peer.Address)}
}
