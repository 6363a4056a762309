package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/bits"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// pseudonyms replaces addresses by others of their kind, one to one. The same
// address always gets the same pseudonym, in whatever form it stands: as MAC,
// in the GUID and link-local GID derived from it, as IP address and as GID.
//
// A pseudonym is the address with some of its bits turned over, the same ones
// in every address: the last three bytes of MACs and GUIDs, all but the last
// byte of an IPv4 address, the upper half and the last three bytes of an IPv6
// address unless it is numbered by hand. So two addresses have as many leading
// bits in common as their pseudonyms do: what was in one subnet, of whatever
// length, still is, and equal host parts stay equal. Well-known prefixes such
// as 10.0.0.0/8 and fe80::/64, and the makers of MACs, stay what they are,
// because a bit is only turned over below the point where an address is told
// apart from them.
//
// Which bits are turned over is the secret. It can be worked out by whoever
// knows an address of that kind of the node, and by nobody else. That is why
// the bits of cards are not used on what can be guessed.
type pseudonyms struct {
	mac, guid, ipv4 pattern

	// IPv6 by its lower half: made of the GUID or MAC of a card, a small number,
	// or neither.
	ipv6OfCard, ipv6Numbered, ipv6Other pattern

	switchID []byte
}

// pattern says which bits of the addresses of one kind are turned over.
type pattern struct {
	flip []byte
	kept []prefix
}

// prefix is a prefix that addresses keep.
type prefix struct {
	bytes []byte
	bits  int
	whole bool // addresses below it are left alone altogether
}

// newPseudonyms draws the secret from a source of random bytes.
func newPseudonyms(random io.Reader) (*pseudonyms, error) {
	secret := make([]byte, 3+3+3+8+maxSwitchID)
	if _, err := io.ReadFull(random, secret); err != nil {
		return nil, err
	}
	card, host, v4, v6, id := secret[:3], secret[3:6], secret[6:9], secret[9:17], secret[17:]
	for _, part := range [][]byte{card, host, v4, v6, id} {
		part[len(part)-1] |= 1 // no address is its own pseudonym
	}
	same := make([]byte, 8)
	return &pseudonyms{
		mac:          pattern{slices.Concat(same[:3], card), keptMACs},
		guid:         pattern{slices.Concat(same[:5], card), keptGUIDs},
		ipv4:         pattern{slices.Concat(v4, same[:1]), keptIPv4},
		ipv6OfCard:   pattern{slices.Concat(v6, same[:5], card), keptIPv6},
		ipv6Numbered: pattern{slices.Concat(v6, same), keptIPv6},
		ipv6Other:    pattern{slices.Concat(v6, same[:5], host), keptIPv6},
		switchID:     id,
	}, nil
}

// of returns the pseudonym of an address, of which it is the pseudonym too.
func (p pattern) of(address []byte) []byte {
	start := 0
	for _, k := range p.kept {
		switch common := commonBits(address, k.bytes); {
		case common < k.bits:
			start = max(start, common+1) // where it leaves the prefix
		case k.whole:
			return address
		default:
			start = max(start, k.bits)
		}
	}
	turned := slices.Clone(address)
	for i := start; i < 8*len(turned); i++ {
		turned[i/8] ^= p.flip[i/8] & (0x80 >> (i % 8))
	}
	return turned
}

// commonBits is how many leading bits two addresses of one kind share.
func commonBits(a, b []byte) int {
	for i := range b {
		if x := a[i] ^ b[i]; x != 0 {
			return 8*i + bits.LeadingZeros8(x)
		}
	}
	return 8 * len(b)
}

// ip returns the pseudonym of an IP address.
func (p *pseudonyms) ip(a netip.Addr) netip.Addr {
	if a.Is4() || a.Is4In6() {
		four := a.Unmap().As4()
		turned, _ := netip.AddrFromSlice(p.ipv4.of(four[:]))
		if a.Is4In6() {
			return netip.AddrFrom16(turned.As16())
		}
		return turned
	}
	sixteen := a.As16()
	turned, _ := netip.AddrFromSlice(p.ipv6(sixteen).of(sixteen[:]))
	return turned.WithZone(a.Zone())
}

// ipv6 returns the pattern for an IPv6 address. What it goes by is never turned
// over, so that it is the pattern for the pseudonym too.
func (p *pseudonyms) ipv6(a [16]byte) pattern {
	subnet, middle := [8]byte(a[:8]), [2]byte(a[11:13])
	switch {
	case [5]byte(a[8:13]) == [5]byte{}:
		return p.ipv6Numbered
	case subnet == [8]byte{0xfe, 0x80}, middle == [2]byte{0xff, 0xfe}, middle == [2]byte{0x03, 0x00}: // EUI-64, GUIDs of Mellanox
		return p.ipv6OfCard
	default:
		return p.ipv6Other
	}
}

// prefix is ip for an address with the length of its subnet.
func (p *pseudonyms) prefix(a netip.Prefix) netip.Prefix {
	if !a.IsValid() {
		return a
	}
	return netip.PrefixFrom(p.ip(a.Addr()), a.Bits())
}

// gid16 returns the pseudonym of a GID: an IP address or, of iWARP, a MAC with
// ten zeros after it.
func (p *pseudonyms) gid16(gid [16]byte) [16]byte {
	if isMACFirst(gid) {
		copy(gid[:], p.mac.of(gid[:6]))
		return gid
	}
	turned := p.ip(netip.AddrFrom16(gid)).As16()
	if isMACFirst(turned) { // it would be taken for the other form
		return gid
	}
	return turned
}

func isMACFirst(gid [16]byte) bool { return [10]byte(gid[6:]) == [10]byte{} }

// The following take addresses as the kernel writes them and give pseudonyms
// in the same form. What has another form is an error, which does not tell the
// address.

// guidText replaces a GUID: 0c42:a103:0065:1234.
func (p *pseudonyms) guidText(s string) (string, error) {
	b, err := parseGroups(s, 8)
	if err != nil {
		return "", err
	}
	return formatGroups(p.guid.of(b)), nil
}

// gidText replaces a GID: fe80:0000:0000:0000:0e42:a1ff:fe65:1234.
func (p *pseudonyms) gidText(s string) (string, error) {
	b, err := parseGroups(s, 16)
	if err != nil {
		return "", err
	}
	turned := p.gid16([16]byte(b))
	return formatGroups(turned[:]), nil
}

// subnetText replaces a subnet prefix, the upper half of a GID.
func (p *pseudonyms) subnetText(s string) (string, error) {
	b, err := parseGroups(s, 8)
	if err != nil {
		return "", err
	}
	return formatGroups(p.ipv6Numbered.of(append(b, make([]byte, 8)...))[:8]), nil
}

// linkText replaces a link layer address, whose form is told by its length:
// MAC, IPoIB (flags and queue pair, then a GID), GUID, or the IP address of a
// tunnel.
func (p *pseudonyms) linkText(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	b, err := hex.DecodeString(strings.ReplaceAll(s, ":", ""))
	if err != nil || net.HardwareAddr(b).String() != s {
		return "", fmt.Errorf("a link layer address of %d characters, want bytes with colons between", len(s))
	}
	switch len(b) {
	case 4:
		b = p.ipv4.of(b)
	case 6:
		b = p.mac.of(b)
	case 8:
		b = p.guid.of(b)
	case 16, 20:
		at := len(b) - 16
		turned := p.gid16([16]byte(b[at:]))
		b = slices.Concat(b[:at], turned[:])
	default:
		return "", fmt.Errorf("a link layer address of %d bytes, want 4, 6, 8, 16 or 20", len(b))
	}
	return net.HardwareAddr(b).String(), nil
}

// maxSwitchID is the longest identity of a switch, MAX_PHYS_ITEM_ID_LEN.
const maxSwitchID = 32

// switchText replaces the identity of a switch: hexadecimal digits, in which
// drivers hide GUIDs and serial numbers in forms of their own.
func (p *pseudonyms) switchText(s string) (string, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) > maxSwitchID {
		return "", fmt.Errorf("a switch identity of %d characters, want %d hexadecimal digits at most", len(s), 2*maxSwitchID)
	}
	for i := range b {
		b[i] ^= p.switchID[maxSwitchID-len(b)+i]
	}
	return hex.EncodeToString(b), nil
}

// addressName finds names made of an address, such as udev gives, with whatever
// was put before or behind them: enx0c42a1651234 by MAC, rocex0c42a10300651234
// by GUID.
var addressName = regexp.MustCompile(`([a-z][a-z0-9]*x)([0-9a-f]{16}|[0-9a-f]{12})`)

// names replaces the addresses in names, wherever they stand in a text.
func (p *pseudonyms) names(text []byte) []byte {
	return addressName.ReplaceAllFunc(text, func(name []byte) []byte {
		parts := addressName.FindSubmatch(name)
		b, err := hex.DecodeString(string(parts[2]))
		if err != nil {
			return name
		}
		kind := p.mac
		if len(b) == len(p.guid.flip) {
			kind = p.guid
		}
		return hex.AppendEncode(slices.Clone(parts[1]), kind.of(b))
	})
}

// parseGroups parses groups of four hexadecimal digits.
func parseGroups(s string, size int) ([]byte, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(s, ":", ""))
	if err != nil || len(b) != size || formatGroups(b) != s {
		return nil, fmt.Errorf("an address of %d characters, want %d groups of four hexadecimal digits", len(s), size/2)
	}
	return b, nil
}

func formatGroups(b []byte) string {
	groups := make([]string, 0, len(b)/2)
	for pair := range slices.Chunk(b, 2) {
		groups = append(groups, fmt.Sprintf("%04x", binary.BigEndian.Uint16(pair)))
	}
	return strings.Join(groups, ":")
}
