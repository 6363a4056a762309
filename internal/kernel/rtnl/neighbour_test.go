package rtnl

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// neighbourBody returns a struct ndmsg of link 3.
func neighbourBody(family byte, state uint16, flags byte) []byte {
	b := append([]byte{family, 0, 0, 0}, words(3)...)
	return append(b, byte(state), byte(state>>8), flags, 0)
}

func TestParseNeighbour(t *testing.T) {
	t.Parallel()
	address := attribute(unix.NDA_LLADDR, []byte{2, 0, 0, 0, 0, 7})
	tests := []struct {
		name string
		in   [][]byte
		want Neighbour
		err  string
	}{
		{
			name: "reachable", in: [][]byte{neighbourBody(unix.AF_INET, unix.NUD_REACHABLE, 0), ip(unix.NDA_DST, "192.0.2.7"), address},
			want: Neighbour{LinkIndex: 3, IP: netip.MustParseAddr("192.0.2.7"), Address: "02:00:00:00:00:07", State: "reachable"},
		},
		{
			name: "not resolved", in: [][]byte{neighbourBody(unix.AF_INET6, unix.NUD_FAILED, 0), ip(unix.NDA_DST, "2001:db8::7")},
			want: Neighbour{LinkIndex: 3, IP: netip.MustParseAddr("2001:db8::7"), State: "failed"},
		},
		{
			name: "flags", in: [][]byte{
				neighbourBody(unix.AF_INET, unix.NUD_NONE, unix.NTF_ROUTER|unix.NTF_EXT_LEARNED),
				ip(unix.NDA_DST, "192.0.2.7"), number(ndaFlagsExt, 1|1<<20),
			},
			want: Neighbour{
				LinkIndex: 3, IP: netip.MustParseAddr("192.0.2.7"), State: "none",
				Flags: []string{"extern_learn", "router", "managed", "268435456"},
			},
		},
		{
			name: "state of a new kernel", in: [][]byte{neighbourBody(unix.AF_INET, 0x100, 0), ip(unix.NDA_DST, "192.0.2.7")},
			want: Neighbour{LinkIndex: 3, IP: netip.MustParseAddr("192.0.2.7"), State: "256"},
		},
		{name: "empty", err: "neighbour: 0 bytes, want a header of 12"},
		{name: "no address", in: [][]byte{neighbourBody(unix.AF_INET, 0, 0)}, err: "neighbour of link 3: no address"},
		{
			name: "other family", in: [][]byte{neighbourBody(unix.AF_INET, 0, 0), ip(unix.NDA_DST, "2001:db8::7")},
			err: "neighbour of link 3: address 2001:db8::7 in a message of family 2",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseNeighbour(nest(tt.in...))
			if errorText(err) != tt.err {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got, ipTypes); diff != "" {
				t.Errorf("neighbour (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseNeighbour(f *testing.F) {
	addCaptured(f, unix.RTM_NEWNEIGH)
	f.Fuzz(func(t *testing.T, b []byte) {
		n, ok := checkParser(t, b, parseNeighbour)
		if ok && (!n.IP.IsValid() || n.State == "") {
			t.Fatalf("%+v has no address or no state", n)
		}
	})
}
