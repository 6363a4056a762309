package rtnl

import (
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// bondOption is how an option of a bond goes to the kernel.
type bondOption struct {
	typ   uint16
	form  bondForm
	names map[uint32]string // of values, where they have any
}

// bondForm is what the value of an option is.
type bondForm int

const (
	number8 bondForm = iota
	number16
	number32
	listIPv4
	listIPv6
	hardwareAddress
)

// bond appends the mode and the options of a bond, which the kernel sets in an
// order of its own.
func (e *encoder) bond(mode string, options map[string]string) {
	if mode != "" {
		e.uint8(unix.IFLA_BOND_MODE, uint8(e.named("bond mode", bondModes, mode, math.MaxUint8)))
	}
	for _, key := range slices.Sorted(maps.Keys(options)) {
		option, ok := bondOptions[key]
		if !ok {
			e.failf("bond option %q: want one of %s", key, strings.Join(slices.Sorted(maps.Keys(bondOptions)), ", "))
			continue
		}
		e.bondOption("bond option "+key, option, options[key])
	}
}

func (e *encoder) bondOption(field string, o bondOption, s string) {
	switch o.form {
	case number8:
		e.uint8(o.typ, uint8(e.named(field, o.names, s, math.MaxUint8)))
	case number16:
		e.uint16(o.typ, uint16(e.named(field, o.names, s, math.MaxUint16)))
	case number32:
		e.uint32(o.typ, e.named(field, o.names, s, math.MaxUint32))
	case listIPv4:
		e.nest(o.typ, func(e *encoder) { e.addrs(field, unix.AF_INET, s) })
	case listIPv6:
		e.nest(o.typ, func(e *encoder) { e.addrs(field, unix.AF_INET6, s) })
	case hardwareAddress:
		mac, err := net.ParseMAC(s)
		if err != nil {
			e.failf("%s %q: want a MAC address", field, s)
		}
		e.bytes(o.typ, mac)
	}
}

// addrs appends addresses that are separated by commas, numbered.
func (e *encoder) addrs(field string, family byte, s string) {
	for i, part := range strings.Split(s, ",") {
		ip, err := netip.ParseAddr(strings.TrimSpace(part))
		if err != nil {
			e.failf("%s: %q: want addresses of family %s with commas between them", field, part, families[uint32(family)])
			return
		}
		e.addr(uint16(i), fmt.Sprintf("%s, address %d:", field, i+1), family, ip)
	}
}
