package rtnl

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// RuleAdd makes a routing policy rule. If there is the same, the error is
// fs.ErrExist.
//
// Family is by default that of Src or Dst, Action "lookup" and Protocol "boot"; a
// Mark without a MarkMask counts in all its bits. Priority is as it stands: with
// 0, the rule is asked with that for the local table. Unknown must be empty.
type RuleAdd struct{ Rule }

// RuleDelete removes a rule: the first of its family and priority that is as the
// fields say that are not zero. Without one, the error is fs.ErrNotExist.
type RuleDelete struct{ Rule }

func (r RuleAdd) encode(e *encoder) (netlink.HeaderType, netlink.HeaderFlags) {
	rule := r.Rule
	if rule.Action == "" {
		rule.Action = ruleActions[unix.FR_ACT_TO_TBL]
	}
	if rule.Protocol == "" {
		rule.Protocol = routeProtocols[unix.RTPROT_BOOT]
	}
	if rule.Action == ruleActions[unix.FR_ACT_TO_TBL] && rule.Table == 0 && !rule.L3MDev {
		e.failf("table 0: want that to look up, 1 or more") // the kernel would take one that is empty
	}
	rule.body(e)
	return unix.RTM_NEWRULE, netlink.Create | netlink.Excl
}

func (r RuleDelete) encode(e *encoder) (netlink.HeaderType, netlink.HeaderFlags) {
	rule := r.Rule
	if rule.Action == "" {
		rule.Action = "0" // any
	}
	rule.body(e)
	return unix.RTM_DELRULE, 0
}

func (r RuleAdd) describe() string    { return "add " + r.words() }
func (r RuleDelete) describe() string { return "delete " + r.words() }

// words describes a rule.
func (r Rule) words() string {
	s := strings.TrimSpace(families[uint32(r.family())] + " rule of priority " + strconv.Itoa(r.Priority))
	if r.Invert {
		s += " not"
	}
	if r.Src.IsValid() {
		s += fmt.Sprintf(" from %v", r.Src)
	}
	if r.Dst.IsValid() {
		s += fmt.Sprintf(" to %v", r.Dst)
	}
	if r.Mark != 0 {
		s += fmt.Sprintf(" mark %#x", r.Mark)
	}
	if r.Table != 0 {
		s += fmt.Sprintf(" for table %d", r.Table)
	}
	return s
}

// family returns the family of a rule, 0 if nothing tells.
func (r Rule) family() byte {
	switch {
	case r.Family == families[unix.AF_INET]:
		return unix.AF_INET
	case r.Family == families[unix.AF_INET6]:
		return unix.AF_INET6
	case r.Family == "" && r.Src.IsValid():
		return familyOf(r.Src.Addr())
	case r.Family == "" && r.Dst.IsValid():
		return familyOf(r.Dst.Addr())
	}
	return unix.AF_UNSPEC
}

// body appends a struct fib_rule_hdr and attributes.
func (r Rule) body(e *encoder) {
	family := r.family()
	if family == unix.AF_UNSPEC {
		e.failf("family %q: want %q or %q", r.Family, families[unix.AF_INET], families[unix.AF_INET6])
	}
	if len(r.Unknown) > 0 {
		e.failf("attributes %v: want none without a name", r.Unknown)
	}
	var flags uint32
	if r.Invert {
		flags = ruleInvert
	}
	e.b = append(e.b, family, byte(max(r.Dst.Bits(), 0)), byte(max(r.Src.Bits(), 0)), byte(e.fit("TOS", r.TOS, math.MaxUint8)))
	e.b = append(e.b, tableByte(r.Table), 0, 0, byte(e.named("action", ruleActions, r.Action, math.MaxUint8)))
	e.word(flags)
	e.uint32(unix.FRA_PRIORITY, e.fit("priority", r.Priority, math.MaxUint32))
	if r.Src.IsValid() {
		e.prefix(unix.FRA_SRC, "source", family, r.Src)
	}
	if r.Dst.IsValid() {
		e.prefix(unix.FRA_DST, "destination", family, r.Dst)
	}
	r.encodeSelector(e)
	r.encodeAction(e)
}

// encodeSelector appends which packets a rule is for, but for their addresses.
func (r Rule) encodeSelector(e *encoder) {
	if r.IIF != "" {
		e.linkName(unix.FRA_IIFNAME, "incoming link", r.IIF)
	}
	if r.OIF != "" {
		e.linkName(unix.FRA_OIFNAME, "outgoing link", r.OIF)
	}
	if r.Mark != 0 {
		e.uint32(unix.FRA_FWMARK, r.Mark)
	}
	if r.MarkMask != 0 {
		e.uint32(unix.FRA_FWMASK, r.MarkMask)
	}
	if r.IPProto != 0 {
		e.uint8(unix.FRA_IP_PROTO, uint8(e.fit("IP protocol", r.IPProto, math.MaxUint8)))
	}
	e.ports(unix.FRA_SPORT_RANGE, "source ports", r.SrcPorts)
	e.ports(unix.FRA_DPORT_RANGE, "destination ports", r.DstPorts)
	if r.UIDs != nil {
		b := binary.NativeEndian.AppendUint32(nil, r.UIDs.First)
		e.bytes(unix.FRA_UID_RANGE, binary.NativeEndian.AppendUint32(b, r.UIDs.Last))
	}
	if r.L3MDev {
		e.uint8(unix.FRA_L3MDEV, 1)
	}
}

// encodeAction appends what becomes of the packets of a rule.
func (r Rule) encodeAction(e *encoder) {
	e.table(unix.FRA_TABLE, r.Table)
	e.number(unix.FRA_GOTO, "rule to go to", r.Goto)
	e.optional(unix.FRA_SUPPRESS_PREFIXLEN, "suppressed prefix length", r.SuppressPrefixLength)
	e.optional(unix.FRA_SUPPRESS_IFGROUP, "suppressed link group", r.SuppressLinkGroup)
	if r.Protocol != "" {
		e.uint8(unix.FRA_PROTOCOL, uint8(e.named("protocol", routeProtocols, r.Protocol, math.MaxUint8)))
	}
}

// ports appends a struct fib_rule_port_range.
func (e *encoder) ports(typ uint16, field string, r *Range) {
	if r == nil {
		return
	}
	if r.First > math.MaxUint16 || r.Last > math.MaxUint16 {
		e.failf("%s %d to %d: want 0 to %d", field, r.First, r.Last, math.MaxUint16)
	}
	b := binary.NativeEndian.AppendUint16(nil, uint16(r.First))
	e.bytes(typ, binary.NativeEndian.AppendUint16(b, uint16(r.Last)))
}
