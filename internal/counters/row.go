package counters

import (
	"strings"
	"unicode"
)

// source is an interface of the kernel that has counters.
type source uint8

// The sources, with what one question to them costs.
const (
	statistics  source = iota // RDMA statistics of a port: one netlink message, some firmware commands
	deviceFiles               // hw_counters of a whole device: a file each, one firmware command for all
	portFiles                 // counters of a port: a file each, a firmware command for each file
	driverStats               // ethtool -S of a netdev: one ioctl, as many firmware commands as the driver has groups
	standard                  // statistics that ethtool defines for all drivers: a netlink message a group
	priorities                // priority flow control of a netdev, by DCB: one netlink message
	vnic                      // devlink's vnic health reporter: one netlink message, one firmware command
	cmFiles                   // messages of ib_cm at a port: a file each, without firmware
)

// row is one counter of the kernel. Its set says which source and drivers have
// it. A # in the key stands for a digit, of a priority or lane, and so does one
// in the label values of feeds.
type row struct {
	key       string   // the kernel's name
	name      string   // of the family with the counter as it is; see set.raw
	kind      Kind     //
	bits      uint8    // width in the kernel; 0 for 64
	saturates bool     // it stops at its largest value, and does not wrap
	scale     float64  // makes the family's unit of it; 0 for 1
	scope     Scope    // of the family with the counter as it is
	tier      Tier     // likewise
	feeds     []string // other families that it is, or is a part of: "name value…", with values of the family's own labels; see registry.output
	apart     []string // families that it feeds only as a counter of queue pairs, because ports have a better one
	pod       bool     // pods have a family of it though it feeds another
	help      string   // one sentence; empty where another row of the same name has it
}

// set is the rows of one source for some drivers.
type set struct {
	source  source
	drivers []string // none: all
	raw     bool     // rows without a name are exported as rdma_ and their key
	again   bool     // they are rows of another set, which some kernels and modes show here instead
	rows    []row
}

// family is the name of the family that has a row's counter as it is; empty
// where only other families have it.
func (s *set) family(r *row) string {
	switch {
	case r.name != "":
		return r.name
	case s.raw:
		return familyOf(r.key)
	}
	return ""
}

// familyOf is the family of a kernel counter under the kernel's name for it,
// with words separated as metrics do: ip4InOctets is rdma_ip4_in_octets.
func familyOf(key string) string {
	var b strings.Builder
	b.WriteString("rdma_")
	runes := []rune(key)
	for i, r := range runes {
		switch {
		case r >= 'A' && r <= 'Z':
			if i > 0 && startsWord(runes, i) {
				b.WriteByte('_')
			}
			b.WriteRune(unicode.ToLower(r))
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// startsWord tells whether the capital at i begins a word: after a small letter
// or digit, or as the last of several capitals (RxECNMrkd: rx, ecn, mrkd).
func startsWord(runes []rune, i int) bool {
	before := runes[i-1]
	if unicode.IsLower(before) || unicode.IsDigit(before) {
		return true
	}
	return unicode.IsUpper(before) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

// digits are what a # stands for. No card has more priorities, and none that is
// known counts more lanes.
const digits = "01234567"

// expand replaces the # of a key or label value.
func expand(s string, digit byte) string { return strings.ReplaceAll(s, "#", string(digit)) }
