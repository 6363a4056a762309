package kerneltest

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// patience is how long to wait for what the kernel does in the background
// before saying that it does not.
const patience = 30 * time.Second

// Attributes that package unix has no names for.
const (
	vethInfoPeer      = 1 // VETH_INFO_PEER
	macvlanModeBridge = 4 // MACVLAN_MODE_BRIDGE
)

// AddVeth makes a pair of veth links, both down.
func AddVeth(tb testing.TB, name, peer string) {
	tb.Helper()
	addLink(tb, name, "veth", nil, func(data *netlink.AttributeEncoder) {
		data.Do(vethInfoPeer, func() ([]byte, error) {
			ae := netlink.NewAttributeEncoder()
			ae.String(unix.IFLA_IFNAME, peer)
			b, err := ae.Encode()
			return append(linkHeader(0, 0, 0), b...), err
		})
	})
}

// AddMacvlan makes a macvlan link in bridge mode on top of parent.
func AddMacvlan(tb testing.TB, name, parent string) {
	tb.Helper()
	index := linkIndex(tb, parent)
	link := func(ae *netlink.AttributeEncoder) { ae.Uint32(unix.IFLA_LINK, uint32(index)) }
	addLink(tb, name, "macvlan", link, func(data *netlink.AttributeEncoder) {
		data.Uint32(unix.IFLA_MACVLAN_MODE, macvlanModeBridge)
	})
}

// AddBridge makes a bridge.
func AddBridge(tb testing.TB, name string) {
	tb.Helper()
	addLink(tb, name, "bridge", nil, nil)
}

// DeleteLink removes a link, and of a veth also the peer.
func DeleteLink(tb testing.TB, name string) {
	tb.Helper()
	must(tb, "delete "+name, request(unix.RTM_DELLINK, 0, linkHeader(linkIndex(tb, name), 0, 0), nil))
}

// SetUp sets a link up.
func SetUp(tb testing.TB, name string) {
	tb.Helper()
	must(tb, "set up "+name, setUp(name))
}

// SetMaster puts a link into a bridge or bond, and takes it out of the one it
// is in if master is empty.
func SetMaster(tb testing.TB, name, master string) {
	tb.Helper()
	var index int
	if master != "" {
		index = linkIndex(tb, master)
	}
	setLink(tb, name, func(ae *netlink.AttributeEncoder) { ae.Uint32(unix.IFLA_MASTER, uint32(index)) })
}

// MoveLink moves a link to another network namespace, where it is down.
func MoveLink(tb testing.TB, name string, ns *os.File) {
	tb.Helper()
	setLink(tb, name, func(ae *netlink.AttributeEncoder) { ae.Uint32(unix.IFLA_NET_NS_FD, uint32(ns.Fd())) })
}

// AddAddress gives a link an address, which is usable at once: there is no
// duplicate address detection.
func AddAddress(tb testing.TB, name string, prefix netip.Prefix) {
	tb.Helper()
	header := make([]byte, unix.SizeofIfAddrmsg)
	header[0] = unix.AF_INET
	if prefix.Addr().Is6() {
		header[0] = unix.AF_INET6
	}
	header[1] = uint8(prefix.Bits())
	header[2] = unix.IFA_F_NODAD
	binary.NativeEndian.PutUint32(header[4:], uint32(linkIndex(tb, name)))
	err := request(unix.RTM_NEWADDR, netlink.Create|netlink.Excl, header, func(ae *netlink.AttributeEncoder) {
		ae.Bytes(unix.IFA_LOCAL, prefix.Addr().AsSlice())
		ae.Bytes(unix.IFA_ADDRESS, prefix.Addr().AsSlice())
	})
	must(tb, fmt.Sprintf("add %v to %s", prefix, name), err)
}

// AwaitNoLink waits until there is no link of a name: the kernel removes those
// of a namespace that ends, and their peers, in the background.
func AwaitNoLink(tb testing.TB, name string) {
	tb.Helper()
	conn, err := netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{Groups: 1 << (unix.RTNLGRP_LINK - 1)})
	must(tb, "subscribe to links", err)
	defer func() { _ = conn.Close() }()
	must(tb, "set deadline", conn.SetReadDeadline(time.Now().Add(patience)))
	for {
		if _, err := net.InterfaceByName(name); err != nil {
			return
		}
		_, err := conn.Receive()
		must(tb, "wait until link "+name+" is gone", err)
	}
}

// addLink makes a link of a kind, with attributes and with data of the kind
// where these are not nil.
func addLink(tb testing.TB, name, kind string, attributes, data func(*netlink.AttributeEncoder)) {
	tb.Helper()
	err := request(unix.RTM_NEWLINK, netlink.Create|netlink.Excl, linkHeader(0, 0, 0), func(ae *netlink.AttributeEncoder) {
		ae.String(unix.IFLA_IFNAME, name)
		if attributes != nil {
			attributes(ae)
		}
		ae.Nested(unix.IFLA_LINKINFO, func(info *netlink.AttributeEncoder) error {
			info.String(unix.IFLA_INFO_KIND, kind)
			if data != nil {
				info.Nested(unix.IFLA_INFO_DATA, func(ae *netlink.AttributeEncoder) error {
					data(ae)
					return nil
				})
			}
			return nil
		})
	})
	must(tb, fmt.Sprintf("add %s link %s", kind, name), err)
}

func setLink(tb testing.TB, name string, attributes func(*netlink.AttributeEncoder)) {
	tb.Helper()
	must(tb, "set "+name, request(unix.RTM_SETLINK, 0, linkHeader(linkIndex(tb, name), 0, 0), attributes))
}

func setUp(name string) error {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	return request(unix.RTM_NEWLINK, 0, linkHeader(link.Index, unix.IFF_UP, unix.IFF_UP), nil)
}

func linkIndex(tb testing.TB, name string) int {
	tb.Helper()
	link, err := net.InterfaceByName(name)
	must(tb, "link "+name, err)
	return link.Index
}

// linkHeader returns a struct ifinfomsg.
func linkHeader(index int, flags, change uint32) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	binary.NativeEndian.PutUint32(b[8:], flags)
	binary.NativeEndian.PutUint32(b[12:], change)
	return b
}

// request asks the kernel for a change and waits until it is made.
func request(typ netlink.HeaderType, flags netlink.HeaderFlags, header []byte, attributes func(*netlink.AttributeEncoder)) error {
	ae := netlink.NewAttributeEncoder()
	if attributes != nil {
		attributes(ae)
	}
	body, err := ae.Encode()
	if err != nil {
		return err
	}
	conn, err := netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{Strict: true})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Execute(netlink.Message{
		Header: netlink.Header{Type: typ, Flags: flags | netlink.Request | netlink.Acknowledge},
		Data:   append(header, body...),
	})
	return err
}

func must(tb testing.TB, what string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}
