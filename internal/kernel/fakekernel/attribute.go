package fakekernel

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/mdlayher/netlink"
)

// encode encodes attributes. They are well-formed, because they come from
// values that were decoded or could have been.
func encode(attributes func(*netlink.AttributeEncoder)) []byte {
	ae := netlink.NewAttributeEncoder()
	attributes(ae)
	b, err := ae.Encode()
	if err != nil {
		panic(err)
	}
	return b
}

// nest encodes attributes within another.
func nest(ae *netlink.AttributeEncoder, typ uint16, attributes func(*netlink.AttributeEncoder)) {
	ae.Nested(typ, func(ae *netlink.AttributeEncoder) error {
		attributes(ae)
		return nil
	})
}

// attributeHeader is the size of struct nlattr.
const attributeHeader = 4

// cut returns the type and the length of the first attribute in b, and how far
// the next is; ok is false where there is none.
func cut(b []byte) (typ uint16, length, next int, ok bool) {
	if len(b) < attributeHeader {
		return 0, 0, 0, false
	}
	const flags = netlink.Nested | netlink.NetByteOrder
	length = int(binary.NativeEndian.Uint16(b))
	if length < attributeHeader || length > len(b) {
		return 0, 0, 0, false
	}
	return binary.NativeEndian.Uint16(b[2:]) &^ flags, length, min((length+3)&^3, len(b)), true
}

// find returns the value of an attribute, nil where there is none.
func find(b []byte, typ uint16) []byte {
	for {
		t, length, next, ok := cut(b)
		switch {
		case !ok:
			return nil
		case t == typ:
			return b[attributeHeader:length]
		}
		b = b[next:]
	}
}

// number returns the value of an attribute of 32 bits.
func number(b []byte, typ uint16) (n uint32, ok bool) {
	v := find(b, typ)
	if len(v) != 4 {
		return 0, false
	}
	return binary.NativeEndian.Uint32(v), true
}

// text returns the value of an attribute that is a string.
func text(b []byte, typ uint16) string { return strings.TrimRight(string(find(b, typ)), "\x00") }

// anyType stands for all types in the path of an attribute.
const anyType = 0xffff

// places returns where in b the values of the attributes at a path of nested
// ones are, in their order.
func places(b []byte, path ...uint16) []int { return placesFrom(0, b, path) }

func placesFrom(at int, b []byte, path []uint16) (found []int) {
	for {
		typ, length, next, ok := cut(b)
		switch {
		case !ok:
			return found
		case typ != path[0] && path[0] != anyType:
		case len(path) == 1:
			found = append(found, at+attributeHeader)
		default:
			found = append(found, placesFrom(at+attributeHeader, b[attributeHeader:length], path[1:])...)
		}
		at, b = at+next, b[next:]
	}
}

// template is an encoded message with values of 64 bits that change. Making it
// from attributes each time would cost more than a kernel takes to answer.
type template struct {
	encoded []byte
	places  []int // of the values in it
	indexes []int // of the values in what a function says, one for each place; nil for all in order
	names   int   // how many values the function says
}

// encode encodes the message and finds the places of values in it.
func (t *template) encode(attributes func(*netlink.AttributeEncoder), path ...uint16) {
	t.encoded = encode(attributes)
	t.places = places(t.encoded, path...)
}

// fill returns a copy of the message with values.
func (t *template) fill(k *Kernel, values func(dst []uint64)) []byte {
	b := slices.Clone(t.encoded)
	if values == nil {
		return b
	}
	k.withValues(t.names, values, func(dst []uint64) {
		for i, at := range t.places {
			if t.indexes != nil {
				i = t.indexes[i]
			}
			binary.NativeEndian.PutUint64(b[at:], dst[i])
		}
	})
	return b
}

// withValues has use called with what a function of the facts says.
func (k *Kernel) withValues(n int, values, use func(dst []uint64)) {
	scratch := k.values.Get().(*[]uint64) //nolint:forcetypeassert // nothing else is in it
	defer k.values.Put(scratch)
	*scratch = slices.Grow((*scratch)[:0], n)[:n]
	values(*scratch)
	use(*scratch)
}

func putString(ae *netlink.AttributeEncoder, typ uint16, s string) {
	if s != "" {
		ae.String(typ, s)
	}
}

// putBytes encodes bytes that are given in hexadecimal.
func putBytes(ae *netlink.AttributeEncoder, typ uint16, digits string) {
	if b, err := hex.DecodeString(digits); err == nil && len(b) > 0 {
		ae.Bytes(typ, b)
	}
}

// putGUID encodes a GUID or prefix that is given as sysfs writes it.
func putGUID(ae *netlink.AttributeEncoder, typ uint16, guid string) {
	if v, err := strconv.ParseUint(strings.ReplaceAll(guid, ":", ""), 16, 64); err == nil {
		ae.Uint64(typ, v)
	}
}

func putBool(ae *netlink.AttributeEncoder, typ uint16, v *bool) {
	if v != nil {
		ae.Uint8(typ, boolByte(*v))
	}
}

func putOptional32(ae *netlink.AttributeEncoder, typ uint16, v *uint32) {
	if v != nil {
		ae.Uint32(typ, *v)
	}
}

func putOptional64(ae *netlink.AttributeEncoder, typ uint16, v *uint64) {
	if v != nil {
		ae.Uint64(typ, *v)
	}
}

// putEnum encodes the number of a name in 8 bits, nothing for no name.
func putEnum(ae *netlink.AttributeEncoder, typ uint16, numbers map[string]uint32, name string) {
	if name != "" {
		ae.Uint8(typ, uint8(numberOf(numbers, name)))
	}
}

func boolByte(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func putUint32(b []byte, v uint32) { binary.NativeEndian.PutUint32(b, v) }
