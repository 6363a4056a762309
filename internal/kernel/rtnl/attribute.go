package rtnl

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// attributes is a cursor over the attributes of a message. It copies nothing.
// The first malformed attribute ends the walk and stays in err; reading on
// after it is harmless and yields zeros.
type attributes struct {
	rest []byte
	typ  uint16 // of the current attribute, without the flag bits
	data []byte // payload of the current attribute
	err  error
}

// next moves to the next attribute.
func (a *attributes) next() bool {
	if a.err != nil || len(a.rest) == 0 {
		return false
	}
	if len(a.rest) < unix.SizeofNlAttr {
		a.err = fmt.Errorf("%d bytes after the last attribute", len(a.rest))
		return false
	}
	n := int(binary.NativeEndian.Uint16(a.rest))
	a.typ = binary.NativeEndian.Uint16(a.rest[2:]) &^ (netlink.Nested | netlink.NetByteOrder)
	if n < unix.SizeofNlAttr || n > len(a.rest) {
		a.fail(fmt.Errorf("length %d, want %d to %d", n, unix.SizeofNlAttr, len(a.rest)))
		return false
	}
	a.data = a.rest[unix.SizeofNlAttr:n:n]
	a.rest = a.rest[min(align4(n), len(a.rest)):]
	return true
}

// fail notes what is wrong with the current attribute, if anything is.
func (a *attributes) fail(err error) {
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("attribute %d: %w", a.typ, err)
	}
}

// fixed returns the payload of an attribute that has n bytes.
func (a *attributes) fixed(n int) []byte {
	if len(a.data) != n {
		a.fail(fmt.Errorf("%d bytes, want %d", len(a.data), n))
		return make([]byte, n)
	}
	return a.data
}

func (a *attributes) uint8() uint8   { return a.fixed(1)[0] }
func (a *attributes) uint16() uint16 { return binary.NativeEndian.Uint16(a.fixed(2)) }
func (a *attributes) uint32() uint32 { return binary.NativeEndian.Uint32(a.fixed(4)) }
func (a *attributes) uint64() uint64 { return binary.NativeEndian.Uint64(a.fixed(8)) }

// int returns a 32-bit signed number.
func (a *attributes) int() int { return int(int32(a.uint32())) }

// string returns the payload up to the first NUL.
func (a *attributes) string() string {
	s, _, _ := bytes.Cut(a.data, []byte{0})
	return string(s)
}

// addr returns an IPv4 or IPv6 address.
func (a *attributes) addr() netip.Addr {
	ip, ok := netip.AddrFromSlice(a.data)
	if !ok {
		a.fail(fmt.Errorf("an address of %d bytes, want 4 or 16", len(a.data)))
	}
	return ip
}

// link returns a link-layer address as colon-separated hex bytes.
func (a *attributes) link() string { return hexBytes(a.data) }

func hexBytes(b []byte) string {
	const digits = "0123456789abcdef"
	if len(b) == 0 {
		return ""
	}
	s := make([]byte, 0, 3*len(b))
	for _, c := range b {
		s = append(s, digits[c>>4], digits[c&0xf], ':')
	}
	return string(s[:len(s)-1])
}

// appendAttribute appends an attribute to a request.
func appendAttribute(b []byte, typ uint16, data []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofNlAttr+len(data)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, data...)
	return append(b, make([]byte, align4(len(data))-len(data))...)
}

// appendUint32 appends a 32-bit attribute to a request.
func appendUint32(b []byte, typ uint16, v uint32) []byte {
	return appendAttribute(b, typ, binary.NativeEndian.AppendUint32(nil, v))
}

func align4(n int) int { return (n + 3) &^ 3 }

// header returns an error if a message is too short for its fixed part.
func header(b []byte, n int) error {
	if len(b) < n {
		return fmt.Errorf("%d bytes, want a header of %d", len(b), n)
	}
	return nil
}

// prefix returns ip with the length that a header gives it. A missing address
// of length 0 is the default of the family.
func prefix(family byte, ip netip.Addr, bits uint8) (netip.Prefix, error) {
	if !ip.IsValid() && bits == 0 {
		ip = netip.IPv4Unspecified()
		if family == unix.AF_INET6 {
			ip = netip.IPv6Unspecified()
		}
	}
	if err := checkFamily(family, ip); err != nil {
		return netip.Prefix{}, err
	}
	p := netip.PrefixFrom(ip, int(bits))
	if !p.IsValid() {
		return netip.Prefix{}, fmt.Errorf("prefix length %d of %v, want at most %d", bits, ip, ip.BitLen())
	}
	return p, nil
}

// checkFamily returns an error if ip is missing or not of the family that the
// message is about.
func checkFamily(family byte, ip netip.Addr) error {
	switch {
	case !ip.IsValid():
		return errors.New("no address")
	case ip.Is4() != (family == unix.AF_INET):
		return fmt.Errorf("address %v in a message of family %d", ip, family)
	}
	return nil
}
