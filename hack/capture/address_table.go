package main

import "net/netip"

// keptMACs and keptGUIDs are the addresses that mean none, and broadcast.
var (
	keptMACs = []prefix{
		{bytes: make([]byte, 6), bits: 48},
		{bytes: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, bits: 48},
	}
	keptGUIDs = []prefix{
		{bytes: make([]byte, 8), bits: 64},
	}
)

// keptIPv4 and keptIPv6 tell private, link-local and global addresses apart,
// and leave alone those that say nothing of a site.
var (
	keptIPv4 = []prefix{
		whole("0.0.0.0/8"),
		within("10.0.0.0/8"),
		within("100.64.0.0/10"),
		whole("127.0.0.0/8"),
		within("169.254.0.0/16"),
		within("172.16.0.0/12"),
		within("192.168.0.0/16"),
		whole("224.0.0.0/3"),
	}
	keptIPv6 = []prefix{
		whole("::/96"),
		whole("::ffff:0:0/96"), // IPv4, which has a pattern of its own
		within("2000::/3"),
		within("fd00::/8"),
		within("fe80::/64"),
		whole("ff00::/8"),
	}
)

func within(s string) prefix {
	p := netip.MustParsePrefix(s)
	return prefix{bytes: p.Addr().AsSlice(), bits: p.Bits()}
}

func whole(s string) prefix {
	p := within(s)
	p.whole = true
	return p
}
