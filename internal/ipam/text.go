package ipam

import (
	"fmt"
	"net/netip"
	"strings"

	"go4.org/netipx"
)

// ParseRange reads "first" or "first-last": of one family, in order, without
// zone, spaces or IPv4 addresses within IPv6.
func ParseRange(text string) (netipx.IPRange, error) {
	left, right, two := strings.Cut(text, "-")
	if !two {
		right = left
	}
	first, err := parseAddr(left)
	if err != nil {
		return netipx.IPRange{}, fmt.Errorf("%q: %w", text, err)
	}
	last, err := parseAddr(right)
	if err != nil {
		return netipx.IPRange{}, fmt.Errorf("%q: %w", text, err)
	}
	if first.Is4() != last.Is4() || last.Less(first) {
		return netipx.IPRange{}, fmt.Errorf(`%q: want "first-last" of one family and in order`, text)
	}
	return netipx.IPRangeFrom(first, last), nil
}

func parseAddr(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return netip.Addr{}, fmt.Errorf(`%q is no address: want one such as "10.0.0.9" or "fd00::9"`, text)
	case addr.Zone() != "":
		return netip.Addr{}, fmt.Errorf("%q has a zone: want %s", text, addr.WithZone(""))
	case addr.Is4In6():
		return netip.Addr{}, fmt.Errorf("%q is an IPv4 address within IPv6: want %s", text, addr.Unmap())
	}
	return addr, nil
}

// FormatRange is a range as "first" or "first-last".
func FormatRange(r netipx.IPRange) string {
	if r.From() == r.To() {
		return r.From().String()
	}
	var buffer [91]byte
	text := r.From().AppendTo(buffer[:0])
	return string(r.To().AppendTo(append(text, '-')))
}

// ParseRanges reads a list of ranges; they may be in any order and overlap.
func ParseRanges(items []string) (*netipx.IPSet, error) {
	var build netipx.IPSetBuilder
	for i, item := range items {
		r, err := ParseRange(item)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		build.AddRange(r)
	}
	return build.IPSet()
}

// FormatRanges is a set as ranges, merged and in order.
func FormatRanges(set *netipx.IPSet) []string { return FormatList(set.Ranges()) }

// FormatList is ranges as they are.
func FormatList(ranges []netipx.IPRange) []string {
	items := make([]string, len(ranges))
	for i, r := range ranges {
		items[i] = FormatRange(r)
	}
	return items
}
