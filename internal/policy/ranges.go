package policy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"

	"go4.org/netipx"
)

// parseRange reads one item of ips or excludeIPs: an address, or a range
// "first-last" of one family. Spaces, CIDRs, zones and IPv4 addresses within
// IPv6 are errors.
func parseRange(item string) (netipx.IPRange, error) {
	if n := strings.Count(item, ","); n > 0 {
		return netipx.IPRange{}, fmt.Errorf("is several in one text: want %d items", n+1)
	}
	left, right, isRange := strings.Cut(item, "-")
	first, err := parseAddr(left)
	if err != nil {
		if !isRange && strings.Contains(item, "/") {
			return netipx.IPRange{}, errors.New(`a CIDR is not accepted here: want an address or a range "first-last"`)
		}
		return netipx.IPRange{}, err
	}
	if !isRange {
		return netipx.IPRangeFrom(first, first), nil
	}
	last, err := parseAddr(right)
	if err != nil {
		if whole, err := netip.ParseAddr(left[:strings.LastIndexAny(left, ".:")+1] + right); err == nil {
			return netipx.IPRange{}, fmt.Errorf("want the whole last address: %s-%s", first, whole)
		}
		return netipx.IPRange{}, err
	}
	switch {
	case first.Is4() != last.Is4():
		return netipx.IPRange{}, fmt.Errorf("first address %s is IPv%d and last %s is IPv%d: want both of one family",
			first, versionOf(first), last, versionOf(last))
	case last.Less(first):
		return netipx.IPRange{}, fmt.Errorf(`last address %s is before first %s: want "first-last"`, last, first)
	}
	return netipx.IPRangeFrom(first, last), nil
}

// parseAddr reads an address as objects have it: without zone, and IPv4 as
// such only.
func parseAddr(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil && strings.TrimSpace(text) != text:
		return netip.Addr{}, fmt.Errorf("%q has spaces around it: want none", text)
	case err != nil:
		return netip.Addr{}, noAddress(text)
	case addr.Zone() != "":
		return netip.Addr{}, fmt.Errorf("%q has a zone: want %s", text, addr.WithZone(""))
	case addr.Is4In6():
		return netip.Addr{}, fmt.Errorf("%q is an IPv4 address within IPv6: want %s", text, addr.Unmap())
	}
	return addr, nil
}

// noAddress says why a text is no address, and what was meant where that is clear.
func noAddress(text string) error {
	address, length, cidr := strings.Cut(text, "/")
	_, err := netip.ParseAddr(address)
	switch plain := withoutZeros(text); {
	case cidr && err == nil:
		return fmt.Errorf("%q is no IP address: leave out /%s", text, length)
	case plain != "":
		return fmt.Errorf("%q has leading zeros, which some read as octal: want %s", text, plain)
	}
	return fmt.Errorf(`%q is no IP address: want one such as "10.0.0.9" or "fd00::9"`, text)
}

// withoutZeros is an IPv4 address without leading zeros, "" if the text is
// none even then, or has none.
func withoutZeros(text string) string {
	parts := strings.Split(text, ".")
	for i, part := range parts {
		if short := strings.TrimLeft(part, "0"); short != "" {
			parts[i] = short
		} else if part != "" {
			parts[i] = "0"
		}
	}
	plain := strings.Join(parts, ".")
	if addr, err := netip.ParseAddr(plain); err != nil || !addr.Is4() || plain == text {
		return ""
	}
	return plain
}

// parsePrefix reads a CIDR and clears its host bits.
func parsePrefix(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil && !strings.Contains(text, "/"):
		return netip.Prefix{}, fmt.Errorf(`%q has no prefix length: want a CIDR such as "10.0.0.0/24" or "fd00::/64"`, text)
	case err != nil:
		return netip.Prefix{}, noPrefix(text)
	case prefix.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("%q is an IPv4 address within IPv6: want an IPv4 CIDR", text)
	}
	return prefix.Masked(), nil
}

// noPrefix says why a text is no CIDR, and what was meant where that is clear.
func noPrefix(text string) error {
	address, length, _ := strings.Cut(text, "/")
	addr, err := netip.ParseAddr(address)
	if plain := withoutZeros(address); plain != "" {
		return fmt.Errorf("%q has leading zeros, which some read as octal: want %s/%s", text, plain, length)
	}
	if bits, lengthErr := strconv.Atoi(length); err == nil && lengthErr == nil && bits > addr.BitLen() {
		return fmt.Errorf("%q is no CIDR: IPv%d has prefix lengths of at most /%d", text, versionOf(addr), addr.BitLen())
	}
	return fmt.Errorf(`%q is no CIDR: want one such as "10.0.0.0/24" or "fd00::/64"`, text)
}

// formatRange is a range as items of ips are written.
func formatRange(r netipx.IPRange) string {
	if r.From() == r.To() {
		return r.From().String()
	}
	return r.From().String() + "-" + r.To().String()
}

// FormatRanges is a set as ips are written: merged and in order.
func FormatRanges(set *netipx.IPSet) []string {
	ranges := set.Ranges()
	items := make([]string, len(ranges))
	for i, r := range ranges {
		items[i] = formatRange(r)
	}
	return items
}

// Count is how many addresses a set has, at most 2^63-1. It costs its ranges,
// whatever their size.
func Count(set *netipx.IPSet) int64 {
	var total int64
	for _, r := range set.Ranges() {
		total += rangeSize(r)
		if total < 0 {
			return math.MaxInt64
		}
	}
	return total
}

// rangeSize is how many addresses a range has, at most 2^63-1.
func rangeSize(r netipx.IPRange) int64 {
	from, to := r.From().As16(), r.To().As16()
	low, borrow := bits.Sub64(binary.BigEndian.Uint64(to[8:]), binary.BigEndian.Uint64(from[8:]), 0)
	high, _ := bits.Sub64(binary.BigEndian.Uint64(to[:8]), binary.BigEndian.Uint64(from[:8]), borrow)
	if high > 0 || low >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low) + 1
}

// versionOf is the family of an address: 4 or 6.
func versionOf(addr netip.Addr) int64 {
	if addr.Is4() {
		return 4
	}
	return 6
}

// AddressWord is "1 address" or "2 addresses".
func AddressWord(n int64) string {
	if n == 1 {
		return "1 address"
	}
	return fmt.Sprintf("%d addresses", n)
}
