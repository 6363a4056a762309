package rtnl

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// encoder builds the body of a request: a header and attributes. The first
// value that does not fit stays in err; going on after it is harmless.
type encoder struct {
	b   []byte
	err error
}

// failf notes what is wrong with a value.
func (e *encoder) failf(format string, a ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, a...)
	}
}

func (e *encoder) bytes(typ uint16, data []byte) {
	if unix.SizeofNlAttr+len(data) > math.MaxUint16 {
		e.failf("attribute %d: %d bytes, want at most %d", typ, len(data), math.MaxUint16-unix.SizeofNlAttr)
		return
	}
	e.b = appendAttribute(e.b, typ, data)
}

func (e *encoder) uint8(typ uint16, v uint8) { e.bytes(typ, []byte{v}) }
func (e *encoder) uint16(typ uint16, v uint16) {
	e.bytes(typ, binary.NativeEndian.AppendUint16(nil, v))
}
func (e *encoder) uint32(typ uint16, v uint32) { e.b = appendUint32(e.b, typ, v) }

func (e *encoder) text(typ uint16, s string) { e.bytes(typ, append([]byte(s), 0)) }

// word appends a field of a header.
func (e *encoder) word(v uint32) { e.b = binary.NativeEndian.AppendUint32(e.b, v) }

// nest appends an attribute that holds what fill appends. Like iproute2's, it
// has no flag that says so: no kernel asks for one in rtnetlink's writes.
func (e *encoder) nest(typ uint16, fill func(*encoder)) {
	inner := encoder{err: e.err}
	fill(&inner)
	e.err = inner.err
	e.bytes(typ, inner.b)
}

// number appends a number of 32 bits unless it is 0, which is for the kernel
// to choose.
func (e *encoder) number(typ uint16, field string, v int) {
	if v != 0 {
		e.uint32(typ, e.fit(field, v, math.MaxUint32))
	}
}

// optional appends a number of 32 bits unless it is nil.
func (e *encoder) optional(typ uint16, field string, v *int) {
	if v != nil {
		e.uint32(typ, e.fit(field, *v, math.MaxUint32))
	}
}

// fit returns a number that has an upper bound, and 0 if it is not within.
func (e *encoder) fit(field string, v, most int) uint32 {
	if v < 0 || v > most {
		e.failf("%s %d: want 0 to %d", field, v, most)
		return 0
	}
	return uint32(v)
}

// index returns the index of a link, which must be there.
func (e *encoder) index(field string, v int) uint32 {
	if v < 1 || v > math.MaxInt32 {
		e.failf("%s %d: want the index of a link, 1 to %d", field, v, math.MaxInt32)
		return 0
	}
	return uint32(v)
}

// named returns the number of a name.
func (e *encoder) named(field string, names map[uint32]string, s string, most uint32) uint32 {
	v, err := value(names, s, most)
	if err != nil {
		e.failf("%s %w", field, err)
	}
	return v
}

// addr appends an address of a family; of any where that is 0.
func (e *encoder) addr(typ uint16, field string, family byte, ip netip.Addr) {
	e.checkAddr(field, family, ip)
	e.bytes(typ, ip.AsSlice())
}

func (e *encoder) checkAddr(field string, family byte, ip netip.Addr) {
	switch {
	case !ip.IsValid():
		e.failf("%s: want an address", field)
	case ip.Zone() != "":
		e.failf("%s %v: want it without a zone; which link it is for the link index says", field, ip)
	case family != 0 && familyOf(ip) != family:
		e.failf("%s %v: want one of family %s", field, ip, families[uint32(family)])
	}
}

// prefix appends the address of a prefix, whose length goes into the header.
func (e *encoder) prefix(typ uint16, field string, family byte, p netip.Prefix) {
	if !p.IsValid() {
		e.failf("%s: want a prefix", field)
		return
	}
	e.addr(typ, field, family, p.Addr())
}

// hardware appends the link-layer address that s is in hex, if any.
func (e *encoder) hardware(typ uint16, field, s string) {
	if s == "" {
		return
	}
	b, err := hex.DecodeString(strings.ReplaceAll(s, ":", ""))
	if err != nil || len(s) != 3*len(b)-1 {
		e.failf("%s %q: want bytes in hex, aa:bb:…", field, s)
	}
	e.bytes(typ, b)
}

// linkName appends the name of a link. The kernel takes more than these: a name
// with a % is a pattern to it, of which it makes another.
func (e *encoder) linkName(typ uint16, field, s string) {
	e.checkName(field, s)
	e.text(typ, s)
}

func (e *encoder) checkName(field, s string) {
	switch {
	case s == "" || len(s) > maxName:
		e.failf("%s %q: %d bytes, want 1 to %d", field, s, len(s), maxName)
	case s == "." || s == ".." || strings.ContainsFunc(s, forbidden):
		e.failf("%s %q: want no %%, /, :, space or control character in it, and neither . nor ..", field, s)
	}
}

func containsNUL(s string) bool { return strings.ContainsRune(s, 0) }

func forbidden(r rune) bool {
	return r <= ' ' || r == 0x7f || strings.ContainsRune("%/:", r)
}

// familyOf returns the family of an address, 0 for none.
func familyOf(ip netip.Addr) byte {
	switch {
	case ip.Is4():
		return unix.AF_INET
	case ip.Is6():
		return unix.AF_INET6
	}
	return unix.AF_UNSPEC
}

// value is the inverse of name: the number of a name, or that which s is in
// decimal.
func value(names map[uint32]string, s string, most uint32) (uint32, error) {
	for v, n := range names {
		if n == s && v <= most {
			return v, nil
		}
	}
	v, err := strconv.ParseUint(s, 10, 32)
	switch {
	case err == nil && v <= uint64(most):
		return uint32(v), nil
	case len(names) == 0:
		return 0, fmt.Errorf("%q: want a number, 0 to %d", s, most)
	}
	var known []string
	for _, k := range slices.Sorted(maps.Keys(names)) {
		known = append(known, strconv.Quote(names[k]))
	}
	return 0, fmt.Errorf("%q: want %s or a number, 0 to %d", s, strings.Join(known, ", "), most)
}

// flagBits is the inverse of flagNames.
func flagBits(names map[uint32]string, set []string) (uint32, error) {
	var bits uint32
	var errs []error
	for _, s := range set {
		bit, err := value(names, s, math.MaxUint32)
		bits |= bit
		errs = append(errs, err)
	}
	return bits, errors.Join(errs...)
}
