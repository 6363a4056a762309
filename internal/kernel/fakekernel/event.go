package fakekernel

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/uevent"
)

// SendLink says to subscriptions that a link is new or changed, or gone. The
// facts stay as they are.
func (k *Kernel) SendLink(l rtnl.Link, deleted bool) {
	var typ netlink.HeaderType = unix.RTM_NEWLINK
	if deleted {
		typ = unix.RTM_DELLINK
	}
	k.send(routeEvents, rtnl.Links, typ, linkMessage(l))
}

// SendAddress says to subscriptions that an address is new or changed, or gone.
func (k *Kernel) SendAddress(a rtnl.Address, deleted bool) {
	var typ netlink.HeaderType = unix.RTM_NEWADDR
	if deleted {
		typ = unix.RTM_DELADDR
	}
	k.send(routeEvents, rtnl.Addresses, typ, addressMessage(a))
}

// SendRDMA says something to monitors.
func (k *Kernel) SendRDMA(e rdmanl.Event) {
	k.send(rdmaEvents, "", rdmanl.CmdMonitor.HeaderType(), encode(func(ae *netlink.AttributeEncoder) {
		ae.Uint8(rdmanl.AttrEventType, uint8(numberOf(eventKinds, e.Kind)))
		if e.DeviceName != "" {
			ae.Uint32(rdmanl.AttrDevIndex, e.DeviceIndex)
			ae.String(rdmanl.AttrDevName, e.DeviceName)
		}
		putPort(ae, e.Port)
		if e.NetdevIndex != 0 {
			ae.Uint32(rdmanl.AttrNetdevIndex, uint32(int32(e.NetdevIndex)))
		}
		putString(ae, rdmanl.AttrNetdevName, e.NetdevName)
		putUnknown(ae, e.Unknown)
	}))
}

// SendUevent says something to listeners. Seq is given here where it is 0, and
// Vars need not have what the other fields say.
func (k *Kernel) SendUevent(e uevent.Event) {
	if e.Seq == 0 {
		e.Seq = k.heard.sequence.Add(1)
	}
	k.send(uevents, "", 0, ueventMessage(e))
}

// ueventMessage is an event as lib/kobject_uevent.c sends it.
func ueventMessage(e uevent.Event) []byte {
	vars := maps.Clone(e.Vars)
	if vars == nil {
		vars = map[string]string{}
	}
	vars["ACTION"], vars["DEVPATH"] = e.Action, e.DevPath
	if e.Subsystem != "" {
		vars["SUBSYSTEM"] = e.Subsystem
	}
	vars["SEQNUM"] = strconv.FormatUint(e.Seq, 10)
	var b strings.Builder
	b.WriteString(e.Action + "@" + e.DevPath + "\x00")
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		b.WriteString(name + "=" + vars[name] + "\x00")
	}
	return []byte(b.String())
}

// LoseEvents has all who listen lose what waits for them, and learn of it.
func (k *Kernel) LoseEvents() {
	for _, l := range k.heard.all() {
		l.overrun()
	}
}

// send has a message delivered to all who listen to it.
func (k *Kernel) send(kind eventKind, group rtnl.Group, typ netlink.HeaderType, b []byte) {
	m := netlink.Message{Header: netlink.Header{Type: typ}, Data: b}
	for _, l := range k.heard.all() {
		if l.kind == kind && (kind != routeEvents || slices.Contains(l.groups, group)) {
			l.deliver(m)
		}
	}
}
