package rtnl

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Rule is a routing policy rule as RTM_NEWRULE describes it: which packets it
// is for, and what becomes of them.
type Rule struct {
	Family   string `json:"family"`           // "inet" or "inet6"
	Priority int    `json:"priority"`         // the lowest is asked first
	Invert   bool   `json:"invert,omitempty"` // it is for the packets that do not match

	Src      netip.Prefix `json:"src,omitzero"`
	Dst      netip.Prefix `json:"dst,omitzero"`
	IIF      string       `json:"iif,omitempty"` // link by which they come in; "lo" for those of the host
	OIF      string       `json:"oif,omitempty"` // link that a socket is bound to
	Mark     uint32       `json:"mark,omitempty"`
	MarkMask uint32       `json:"markMask,omitempty"` // bits of the mark that count; 0: the mark does not
	TOS      int          `json:"tos,omitempty"`
	IPProto  int          `json:"ipProto,omitempty"` // 6 TCP, 17 UDP
	SrcPorts *Range       `json:"srcPorts,omitempty"`
	DstPorts *Range       `json:"dstPorts,omitempty"`
	UIDs     *Range       `json:"uids,omitempty"`   // owners of the socket
	L3MDev   bool         `json:"l3mdev,omitempty"` // those of a VRF; looked up in its table

	Action               string `json:"action"`                         // "lookup", "goto", "blackhole", "unreachable", "prohibit", "nop"
	Table                int    `json:"table,omitempty"`                // for "lookup"; 0 with L3MDev
	Goto                 int    `json:"goto,omitempty"`                 // for "goto": priority of the rule to go on with
	SuppressPrefixLength *int   `json:"suppressPrefixLength,omitempty"` // routes this long or shorter do not count
	SuppressLinkGroup    *int   `json:"suppressLinkGroup,omitempty"`    // routes by links of this group do not count
	Protocol             string `json:"protocol,omitempty"`             // who made it: "kernel", "static", …

	// Unknown lists attributes that this version has no name for. A rule that
	// has any may be for fewer packets than its fields say.
	Unknown []uint16 `json:"unknown,omitempty"`
}

// Range is a range of ports or users, both ends included.
type Range struct {
	First uint32 `json:"first"`
	Last  uint32 `json:"last"`
}

const (
	ruleHeaderSize = 12         // struct fib_rule_hdr
	ruleInvert     = 0x00000002 // FIB_RULE_INVERT
	fraSportMask   = 28         // FRA_SPORT_MASK
	fraDportMask   = 29         // FRA_DPORT_MASK
)

// Rules returns the IPv4 and IPv6 rules of the namespace, IPv4 first, each
// family in the order in which they are asked.
func (c *Client) Rules() ([]Rule, error) {
	return dumpIP(c, "rules", unix.RTM_GETRULE, unix.RTM_NEWRULE, ruleHeaderSize, parseRule)
}

// parseRule decodes the body of an RTM_NEWRULE or RTM_DELRULE.
func parseRule(b []byte) (Rule, error) {
	if err := header(b, ruleHeaderSize); err != nil {
		return Rule{}, fmt.Errorf("rule: %w", err)
	}
	r := Rule{
		Family: name(families, uint32(b[0])),
		TOS:    int(b[3]),
		Table:  int(b[4]),
		Action: name(ruleActions, uint32(b[7])),
		Invert: binary.NativeEndian.Uint32(b[8:])&ruleInvert != 0,
	}
	var src, dst netip.Addr
	a := attributes{rest: b[ruleHeaderSize:]}
	for a.next() {
		switch a.typ {
		case unix.FRA_SRC:
			src = a.addr()
		case unix.FRA_DST:
			dst = a.addr()
		default:
			r.selector(&a)
		}
	}
	err := a.err
	if err == nil {
		err = r.prefixes(b, dst, src)
	}
	if err != nil {
		return Rule{}, fmt.Errorf("%s rule of priority %d: %w", r.Family, r.Priority, err)
	}
	return r, nil
}

// prefixes sets the prefixes that a rule is for, with the lengths in the
// header; most rules are for all.
func (r *Rule) prefixes(b []byte, dst, src netip.Addr) (err error) {
	if dst.IsValid() || b[1] != 0 {
		if r.Dst, err = prefix(b[0], dst, b[1]); err != nil {
			return fmt.Errorf("destination: %w", err)
		}
	}
	if src.IsValid() || b[2] != 0 {
		if r.Src, err = prefix(b[0], src, b[2]); err != nil {
			return fmt.Errorf("source: %w", err)
		}
	}
	return nil
}

// selector decodes which packets a rule is for.
func (r *Rule) selector(a *attributes) {
	switch a.typ {
	case unix.FRA_IIFNAME:
		r.IIF = a.string()
	case unix.FRA_OIFNAME:
		r.OIF = a.string()
	case unix.FRA_FWMARK:
		r.Mark = a.uint32()
	case unix.FRA_FWMASK:
		r.MarkMask = a.uint32()
	case unix.FRA_IP_PROTO:
		r.IPProto = int(a.uint8())
	case unix.FRA_SPORT_RANGE:
		r.SrcPorts = a.ports()
	case unix.FRA_DPORT_RANGE:
		r.DstPorts = a.ports()
	case unix.FRA_UID_RANGE:
		b := a.fixed(8)
		r.UIDs = &Range{binary.NativeEndian.Uint32(b), binary.NativeEndian.Uint32(b[4:])}
	case unix.FRA_L3MDEV:
		r.L3MDev = a.uint8() != 0
	default:
		r.action(a)
	}
}

// action decodes what becomes of the packets of a rule.
func (r *Rule) action(a *attributes) {
	switch a.typ {
	case unix.FRA_PRIORITY:
		r.Priority = int(a.uint32())
	case unix.FRA_TABLE: // the header's byte has room for 0 to 255 only
		r.Table = int(a.uint32())
	case unix.FRA_GOTO:
		r.Goto = int(a.uint32())
	case unix.FRA_SUPPRESS_PREFIXLEN:
		r.SuppressPrefixLength = a.unlessMinusOne()
	case unix.FRA_SUPPRESS_IFGROUP:
		r.SuppressLinkGroup = a.unlessMinusOne()
	case unix.FRA_PROTOCOL:
		r.Protocol = name(routeProtocols, uint32(a.uint8()))
	case fraSportMask, fraDportMask: // since kernel 6.16, and 0xffff with every range
		if a.uint16() != math.MaxUint16 {
			r.Unknown = append(r.Unknown, a.typ)
		}
	case unix.FRA_PAD, unix.FRA_FLOW: // the latter marks packets, and selects none
	default:
		r.Unknown = append(r.Unknown, a.typ)
	}
}

// ports decodes struct fib_rule_port_range.
func (a *attributes) ports() *Range {
	b := a.fixed(4)
	return &Range{uint32(binary.NativeEndian.Uint16(b)), uint32(binary.NativeEndian.Uint16(b[2:]))}
}

// unlessMinusOne returns a number, nil for the -1 by which the kernel says
// that there is none.
func (a *attributes) unlessMinusOne() *int {
	v := a.uint32()
	if v == math.MaxUint32 {
		return nil
	}
	n := int(v)
	return &n
}
