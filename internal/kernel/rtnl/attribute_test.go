package rtnl

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

var (
	prefixType netip.Prefix
	addrType   netip.Addr
)

// nest returns the payload of an attribute that holds others.
func nest(attributes ...[]byte) []byte { return bytes.Join(attributes, nil) }

func attribute(typ uint16, data []byte) []byte { return appendAttribute(nil, typ, data) }

func text(typ uint16, s string) []byte { return attribute(typ, append([]byte(s), 0)) }

func number(typ uint16, v uint32) []byte { return appendUint32(nil, typ, v) }

func short(typ, v uint16) []byte {
	return attribute(typ, binary.NativeEndian.AppendUint16(nil, v))
}

// words returns the payload of an attribute that is a struct of 32-bit words.
func words(v ...uint32) []byte {
	var b []byte
	for _, w := range v {
		b = binary.NativeEndian.AppendUint32(b, w)
	}
	return b
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   []byte
		want []uint16 // types
		err  string
	}{
		{name: "none"},
		{name: "some", in: nest(number(1, 2), text(3, "x")), want: []uint16{1, 3}},
		{name: "flags of the type", in: attribute(7|unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER, nil), want: []uint16{7}},
		{name: "last not padded", in: attribute(5, []byte{1, 2})[:6], want: []uint16{5}},
		{name: "header cut", in: []byte{4, 0, 1}, err: "3 bytes after the last attribute"},
		{name: "length too small", in: []byte{3, 0, 1, 0}, err: "attribute 1: length 3, want 4 to 4"},
		{name: "length too great", in: []byte{5, 0, 1, 0}, err: "attribute 1: length 5, want 4 to 4"},
		{name: "good, then bad", in: nest(number(1, 2), []byte{0, 0, 9, 0}), want: []uint16{1}, err: "attribute 9: length 0, want 4 to 4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []uint16
			a := attributes{rest: tt.in}
			for a.next() {
				got = append(got, a.typ)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("types %v, want %v", got, tt.want)
			}
			if msg := errorText(a.err); msg != tt.err {
				t.Errorf("error %q, want %q", msg, tt.err)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzAttributes holds that whatever can be walked is what its parts, put
// together again, are.
func FuzzAttributes(f *testing.F) {
	f.Add(nest(number(1, 2), text(3, "x"), attribute(4|unix.NLA_F_NESTED, number(1, 2))))
	f.Add([]byte{5, 0, 1, 0, 7, 0, 0, 0})
	f.Add([]byte{3, 0, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		var payload int
		a := attributes{rest: b}
		for a.next() {
			payload += len(a.data)
			again = appendAttribute(again, a.typ, a.data)
		}
		if payload > len(b) {
			t.Fatalf("%d bytes of payload in %d bytes", payload, len(b))
		}
		if a.err != nil {
			return
		}
		if len(again) != align4(len(b)) {
			t.Fatalf("put together again: %d bytes, want %d", len(again), align4(len(b)))
		}
		second := attributes{rest: again}
		for second.next() {
		}
		if second.err != nil {
			t.Fatalf("put together again: %v", second.err)
		}
	})
}

// checkParser holds what is true of every parser: that it returns an error or
// a value, that the value keeps nothing of the message, and that an attribute
// of a newer kernel changes nothing.
func checkParser[T any](t *testing.T, b []byte, parse func([]byte) (T, error)) (value T, ok bool) {
	t.Helper()
	input := bytes.Clone(b)
	value, err := parse(input)
	if err != nil {
		if !reflect.ValueOf(&value).Elem().IsZero() {
			t.Fatalf("a value, %+v, and an error, %v", value, err)
		}
		return value, false
	}
	again, _ := parse(bytes.Clone(b))
	clear(input)
	if !reflect.DeepEqual(value, again) {
		t.Fatalf("%+v became %+v when the message was overwritten", again, value)
	}
	if len(b)%4 != 0 {
		return value, true
	}
	newer, err := parse(appendAttribute(bytes.Clone(b), 0x3fff, []byte{1, 2, 3}))
	if err != nil {
		t.Fatalf("with an unknown attribute: %v", err)
	}
	if r, ok := any(&newer).(*Rule); ok { // the one thing that says so
		r.Unknown = r.Unknown[:len(r.Unknown)-1]
		if len(r.Unknown) == 0 {
			r.Unknown = nil
		}
	}
	if !reflect.DeepEqual(value, newer) {
		t.Fatalf("%+v with an unknown attribute, %+v without", newer, value)
	}
	return value, true
}
