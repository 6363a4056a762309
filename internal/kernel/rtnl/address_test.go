package rtnl

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
)

// addressBody returns a struct ifaddrmsg of link 3.
func addressBody(family, bits, flags, scope byte) []byte {
	return append([]byte{family, bits, flags, scope}, words(3)...)
}

func ip(typ uint16, s string) []byte { return attribute(typ, netip.MustParseAddr(s).AsSlice()) }

func TestParseAddress(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   [][]byte
		want Address
		err  string
	}{
		{
			name: "IPv4", in: [][]byte{
				addressBody(unix.AF_INET, 24, unix.IFA_F_PERMANENT, 0),
				ip(unix.IFA_ADDRESS, "172.16.11.2"), ip(unix.IFA_LOCAL, "172.16.11.2"), text(unix.IFA_LABEL, "net1"),
				ip(unix.IFA_BROADCAST, "172.16.11.255"),
			},
			want: Address{
				LinkIndex: 3, Prefix: netip.MustParsePrefix("172.16.11.2/24"), Broadcast: netip.MustParseAddr("172.16.11.255"),
				Label: "net1", Scope: "global",
			},
		},
		{
			name: "IPv4 with a peer", in: [][]byte{
				addressBody(unix.AF_INET, 30, 0, 253),
				ip(unix.IFA_ADDRESS, "192.0.2.2"), ip(unix.IFA_LOCAL, "192.0.2.1"),
			},
			want: Address{LinkIndex: 3, Prefix: netip.MustParsePrefix("192.0.2.1/32"), Peer: netip.MustParsePrefix("192.0.2.2/30"), Scope: "link"},
		},
		{
			name: "IPv4 without IFA_ADDRESS",
			in:   [][]byte{addressBody(unix.AF_INET, 24, 0, 254), ip(unix.IFA_LOCAL, "192.0.2.1")},
			want: Address{LinkIndex: 3, Prefix: netip.MustParsePrefix("192.0.2.1/32"), Scope: "host"},
		},
		{
			name: "IPv6", in: [][]byte{addressBody(unix.AF_INET6, 64, unix.IFA_F_TENTATIVE, 0), ip(unix.IFA_ADDRESS, "2001:db8::1")},
			want: Address{LinkIndex: 3, Prefix: netip.MustParsePrefix("2001:db8::1/64"), Scope: "global", Tentative: true},
		},
		{
			name: "IPv6 with a peer, flags of 32 bits", in: [][]byte{
				addressBody(unix.AF_INET6, 128, unix.IFA_F_TENTATIVE, 99),
				ip(unix.IFA_ADDRESS, "2001:db8::2"), ip(unix.IFA_LOCAL, "2001:db8::1"),
				number(unix.IFA_FLAGS, unix.IFA_F_DADFAILED|unix.IFA_F_DEPRECATED|unix.IFA_F_NOPREFIXROUTE),
			},
			want: Address{
				LinkIndex: 3, Prefix: netip.MustParsePrefix("2001:db8::1/128"), Peer: netip.MustParsePrefix("2001:db8::2/128"),
				Scope: "99", DADFailed: true, Deprecated: true, NoPrefixRoute: true,
			},
		},
		{name: "empty", err: "address: 0 bytes, want a header of 8"},
		{name: "no address", in: [][]byte{addressBody(unix.AF_INET, 0, 0, 0)}, err: "address of link 3: no address"},
		{
			name: "address too short", in: [][]byte{addressBody(unix.AF_INET, 24, 0, 0), attribute(unix.IFA_LOCAL, []byte{1, 2})},
			err: "address of link 3: attribute 2: an address of 2 bytes, want 4 or 16",
		},
		{
			name: "length too great", in: [][]byte{addressBody(unix.AF_INET, 33, 0, 0), ip(unix.IFA_ADDRESS, "192.0.2.1")},
			err: "address of link 3: prefix length 33 of 192.0.2.1, want at most 32",
		},
		{
			name: "other family", in: [][]byte{addressBody(unix.AF_INET6, 24, 0, 0), ip(unix.IFA_ADDRESS, "192.0.2.1")},
			err: "address of link 3: address 192.0.2.1 in a message of family 10",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseAddress(nest(tt.in...))
			if errorText(err) != tt.err {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got, ipTypes); diff != "" {
				t.Errorf("address (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseAddress(f *testing.F) {
	addCaptured(f, unix.RTM_NEWADDR)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := checkParser(t, b, parseAddress)
		if !ok {
			return
		}
		if !a.Prefix.IsValid() || a.Peer.IsValid() && !a.Prefix.IsSingleIP() {
			t.Fatalf("%+v has no usable address", a)
		}
	})
}

func TestAddressesLive(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "v0", "v1")
		want := []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("2001:db8::1/64")}
		for _, prefix := range want {
			kerneltest.AddAddress(t, "v0", prefix)
		}
		c := dialLive(t)
		v0, err := c.LinkByName("v0")
		if err != nil {
			t.Fatal(err)
		}
		all, err := c.Addresses()
		if err != nil {
			t.Fatal(err)
		}
		var got []netip.Prefix
		for _, a := range all {
			if a.LinkIndex == v0.Index {
				got = append(got, a.Prefix)
			}
		}
		if diff := cmp.Diff(want, got, ipTypes); diff != "" {
			t.Errorf("addresses of v0 (-want +got):\n%s", diff)
		}
	})
}
