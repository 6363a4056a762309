package rtnl

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// ruleBody returns a struct fib_rule_hdr.
func ruleBody(family, dstLen, srcLen, action byte, flags uint32) []byte {
	return append([]byte{family, dstLen, srcLen, 0, unix.RT_TABLE_MAIN, 0, 0, action}, words(flags)...)
}

func TestParseRule(t *testing.T) {
	t.Parallel()
	zero := 0
	tests := []struct {
		name string
		in   [][]byte
		want Rule
		err  string
	}{
		{
			name: "for all", in: [][]byte{ruleBody(unix.AF_INET, 0, 0, 1, 0), number(unix.FRA_SUPPRESS_PREFIXLEN, 0xffffffff)},
			want: Rule{Family: "inet", Action: "lookup", Table: 254},
		},
		{
			name: "of a rail", in: [][]byte{
				ruleBody(unix.AF_INET, 0, 32, 1, 0), ip(unix.FRA_SRC, "172.16.11.2"),
				number(unix.FRA_PRIORITY, 1000), number(unix.FRA_TABLE, 100), attribute(unix.FRA_PROTOCOL, []byte{unix.RTPROT_STATIC}),
			},
			want: Rule{
				Family: "inet", Priority: 1000, Src: netip.MustParsePrefix("172.16.11.2/32"),
				Action: "lookup", Table: 100, Protocol: "static",
			},
		},
		{
			name: "everything", in: [][]byte{
				ruleBody(unix.AF_INET6, 48, 0, 2, ruleInvert), ip(unix.FRA_DST, "2001:db8::"),
				text(unix.FRA_IIFNAME, "lo"), text(unix.FRA_OIFNAME, "net1"),
				number(unix.FRA_FWMARK, 0x10), number(unix.FRA_FWMASK, 0xff),
				attribute(unix.FRA_IP_PROTO, []byte{17}), attribute(unix.FRA_L3MDEV, []byte{1}),
				attribute(unix.FRA_SPORT_RANGE, []byte{1, 0, 2, 0}), attribute(unix.FRA_DPORT_RANGE, []byte{0xb7, 0x12, 0xb7, 0x12}),
				short(fraSportMask, 0xffff), short(fraDportMask, 0xfff0),
				attribute(unix.FRA_UID_RANGE, words(1000, 2000)), number(unix.FRA_GOTO, 32766),
				number(unix.FRA_SUPPRESS_PREFIXLEN, 0), number(unix.FRA_SUPPRESS_IFGROUP, 0xffffffff),
			},
			want: Rule{
				Family: "inet6", Invert: true, Dst: netip.MustParsePrefix("2001:db8::/48"), IIF: "lo", OIF: "net1",
				Mark: 0x10, MarkMask: 0xff, IPProto: 17, L3MDev: true, SrcPorts: &Range{1, 2}, DstPorts: &Range{4791, 4791},
				UIDs: &Range{1000, 2000}, Action: "goto", Goto: 32766, Table: 254, SuppressPrefixLength: &zero,
				Unknown: []uint16{fraDportMask},
			},
		},
		{
			name: "selector and action of a new kernel", in: [][]byte{ruleBody(unix.AF_INET, 0, 0, 77, 0), attribute(99, []byte{1})},
			want: Rule{Family: "inet", Action: "77", Table: 254, Unknown: []uint16{99}},
		},
		{name: "empty", err: "rule: 0 bytes, want a header of 12"},
		{
			name: "no source", in: [][]byte{ruleBody(unix.AF_INET, 0, 24, 1, 0), number(unix.FRA_PRIORITY, 9)},
			err: "inet rule of priority 9: source: no address",
		},
		{
			name: "destination of the other family", in: [][]byte{ruleBody(unix.AF_INET6, 24, 0, 1, 0), ip(unix.FRA_DST, "192.0.2.0")},
			err: "inet6 rule of priority 0: destination: address 192.0.2.0 in a message of family 10",
		},
		{
			name: "ports too short", in: [][]byte{ruleBody(unix.AF_INET, 0, 0, 1, 0), attribute(unix.FRA_DPORT_RANGE, []byte{1, 0})},
			err: "inet rule of priority 0: attribute 24: 2 bytes, want 4",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseRule(nest(tt.in...))
			if errorText(err) != tt.err {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got, ipTypes); diff != "" {
				t.Errorf("rule (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseRule(f *testing.F) {
	addCaptured(f, unix.RTM_NEWRULE)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, ok := checkParser(t, b, parseRule)
		if !ok {
			return
		}
		for _, p := range []netip.Prefix{r.Src, r.Dst} {
			if p.IsValid() && p.Addr().Is4() != (r.Family == "inet") {
				t.Fatalf("%+v mixes families", r)
			}
		}
	})
}
