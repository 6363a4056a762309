package rtnl

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
)

// pfcStruct encodes a struct ieee_pfc with 8 traffic classes.
func pfcStruct(p PFC) []byte {
	b := []byte{8, p.Enabled, 0, 0, 0, 0, 0, 0}
	for _, v := range append(p.Requests[:], p.Indications[:]...) {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return b
}

// dcbAnswer is an answer with what is inside of DCB_ATTR_IEEE.
func dcbAnswer(ieee ...[]byte) []byte {
	var inside []byte
	for _, b := range ieee {
		inside = append(inside, b...)
	}
	b := appendAttribute([]byte{0, 21, 0, 0}, 1, []byte("eth0\x00"))
	return appendAttribute(b, 13, inside)
}

var aPFC = PFC{Enabled: 1 << 3, Requests: [8]uint64{3: 1 << 40, 7: 7}, Indications: [8]uint64{0: 1, 3: 5}}

// ets is DCB_ATTR_IEEE_ETS, of which nothing is read.
func ets() []byte { return appendAttribute(nil, 1, make([]byte, 59)) }

func TestPFC(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer []byte
		errno  unix.Errno
		want   PFC
		err    string
		is     error
	}{
		{name: "on for a priority", answer: dcbAnswer(ets(), appendAttribute(nil, 2, pfcStruct(aPFC)), appendAttribute(nil, 3|netlink.Nested, nil)), want: aPFC},
		{name: "off", answer: dcbAnswer(appendAttribute(nil, 2, pfcStruct(PFC{})))},
		{name: "no PFC", answer: dcbAnswer(ets()), err: `DCB of link "eth0": no priority flow control`, is: ErrNotSupported},
		{name: "nothing", answer: []byte{0, 21, 0, 0}, err: "no priority flow control", is: ErrNotSupported},
		{name: "short PFC", answer: dcbAnswer(appendAttribute(nil, 2, make([]byte, 8))), err: `DCB of link "eth0": attribute 13: attribute 2: 8 bytes, want 136`},
		{name: "other command", answer: []byte{0, 22, 0, 0}, err: "answer to the command 22, want 21"},
		{name: "no header", answer: []byte{0, 21}, err: "2 bytes, want a header of 4"},
		{name: "driver without DCB", errno: unix.EOPNOTSUPP, err: `DCB of link "eth0": RTM_GETDCB: operation not supported`, is: ErrNotSupported},
		{name: "no such link", errno: unix.ENODEV, err: "no such device", is: fs.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, exchange{
				typ: 78, flags: netlink.Request, body: []byte("\x00\x15\x00\x00" + "\x09\x00\x01\x00eth0\x00\x00\x00\x00"),
				answer: []netlink.Message{message(78, 0, tt.answer)}, errno: tt.errno,
			})
			got, err := c.PFC("eth0")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v, want %v", err, tt.is)
			}
		})
	}
}

func TestLivePFC(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		c, err := Dial(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := c.PFC("lo"); !errors.Is(err, ErrNotSupported) {
			t.Errorf("lo: error %v, want %v", err, ErrNotSupported)
		}
		// A kernel without DCB does not even look for the link.
		if _, err := c.PFC("absent"); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrNotSupported) {
			t.Errorf("no such link: error %v, want %v", err, fs.ErrNotExist)
		}
	})
}

// FuzzPFC wants what was decoded to be the same when encoded again.
func FuzzPFC(f *testing.F) {
	f.Add(dcbAnswer(ets(), appendAttribute(nil, 2, pfcStruct(aPFC))))
	f.Add(dcbAnswer(appendAttribute(nil, 2, make([]byte, 8))))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePFC(b)
		if err != nil {
			if p != (PFC{}) {
				t.Errorf("error %v and a value: %+v", err, p)
			}
			return
		}
		again, err := parsePFC(dcbAnswer(appendAttribute(nil, 2, pfcStruct(p))))
		if diff := cmp.Diff(p, again); err != nil || diff != "" {
			t.Errorf("after encoding (-want +got):\n%s\nerror %v", diff, err)
		}
	})
}
