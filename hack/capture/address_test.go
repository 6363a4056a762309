package main

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// testPseudonyms are the same in every run.
func testPseudonyms(tb testing.TB) *pseudonyms {
	tb.Helper()
	secret := bytes.Repeat([]byte{0x5a, 0x33, 0x97, 0x68, 0x0d, 0xc4, 0x71, 0x2e, 0xb9}, 8)
	p, err := newPseudonyms(bytes.NewReader(secret))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestPseudonyms(t *testing.T) {
	t.Parallel()
	p := testPseudonyms(t)
	ip := func(_ *pseudonyms, s string) (string, error) { return p.ip(netip.MustParseAddr(s)).String(), nil }
	tests := []struct {
		name    string
		replace replacement
		in      string
		want    string
	}{
		{"MAC", (*pseudonyms).linkText, "0c:42:a1:65:12:34", "0c:42:a1:3f:21:a3"},
		{"no MAC", (*pseudonyms).linkText, "00:00:00:00:00:00", "00:00:00:00:00:00"},
		{"broadcast", (*pseudonyms).linkText, "ff:ff:ff:ff:ff:ff", "ff:ff:ff:ff:ff:ff"},
		{"no address", (*pseudonyms).linkText, "", ""},
		{
			"IPoIB", (*pseudonyms).linkText,
			"00:00:10:49:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:65:12:34",
			"00:00:10:49:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:3f:21:a3",
		},
		{"tunnel", (*pseudonyms).linkText, "0a:05:01:14", "0a:2b:b8:14"},
		{"GUID", (*pseudonyms).guidText, "0c42:a103:0065:1234", "0c42:a103:003f:21a3"},
		{"GUID by EUI-64", (*pseudonyms).guidText, "0e42:a1ff:fe65:1234", "0e42:a1ff:fe3f:21a3"},
		{"no GUID", (*pseudonyms).guidText, "0000:0000:0000:0000", "0000:0000:0000:0000"},
		{"link-local GID", (*pseudonyms).gidText, "fe80:0000:0000:0000:0e42:a1ff:fe65:1234", "fe80:0000:0000:0000:0e42:a1ff:fe3f:21a3"},
		{"InfiniBand GID", (*pseudonyms).gidText, "fe80:0000:0000:0000:0c42:a103:0065:1234", "fe80:0000:0000:0000:0c42:a103:003f:21a3"},
		{"IPv4 GID", (*pseudonyms).gidText, "0000:0000:0000:0000:0000:ffff:0a05:0114", "0000:0000:0000:0000:0000:ffff:0a2b:b814"},
		{"iWARP GID", (*pseudonyms).gidText, "0c42:a165:1234:0000:0000:0000:0000:0000", "0c42:a13f:21a3:0000:0000:0000:0000:0000"},
		{"no GID", (*pseudonyms).gidText, "0000:0000:0000:0000:0000:0000:0000:0000", "0000:0000:0000:0000:0000:0000:0000:0000"},
		{"subnet", (*pseudonyms).subnetText, "fe80:0000:0000:0000", "fe80:0000:0000:0000"},
		{"switch", (*pseudonyms).switchText, "0c42a1", "3fd5c8"},
		{"private", ip, "10.5.1.20", "10.43.184.20"},
		{"private of 12 bits", ip, "172.16.11.2", "172.30.178.2"},
		{"private of 16 bits", ip, "192.168.100.7", "192.168.221.7"},
		{"link-local", ip, "169.254.3.4", "169.254.186.4"},
		{"loopback", ip, "127.0.0.1", "127.0.0.1"},
		{"global", ip, "93.184.216.34", "76.150.97.34"},
		{"multicast", ip, "224.0.0.1", "224.0.0.1"},
		{"IPv6 link-local", ip, "fe80::e42:a1ff:fe65:1234", "fe80::e42:a1ff:fe3f:21a3"},
		{"IPv6 link-local by hand", ip, "fe80::1", "fe80::1"},
		{"IPv6 loopback", ip, "::1", "::1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.replace(p, tt.in)
			if err != nil || got != tt.want {
				t.Errorf("%s → %s, %v, want %s", tt.in, got, err, tt.want)
			}
		})
	}
}

// TestPseudonymsRefuse wants errors that do not tell what they refuse.
func TestPseudonymsRefuse(t *testing.T) {
	t.Parallel()
	p := testPseudonyms(t)
	tests := []struct {
		name    string
		replace replacement
		in      string
	}{
		{"MAC of three bytes", (*pseudonyms).linkText, "0c:42:a1"},
		{"MAC without colons", (*pseudonyms).linkText, "0c42a1651234"},
		{"no MAC", (*pseudonyms).linkText, "mlx5_0"},
		{"short GUID", (*pseudonyms).guidText, "0c42:a103:0065"},
		{"GUID with other groups", (*pseudonyms).guidText, "0c42:a103:65:01234"},
		{"long GID", (*pseudonyms).gidText, "fe80:0000:0000:0000:0e42:a1ff:fe65:1234:5678"},
		{"GID as an IP address", (*pseudonyms).gidText, "fe80::e42:a1ff:fe65:1234"},
		{"subnet of three groups", (*pseudonyms).subnetText, "fe80:0000:0000"},
		{"switch that is no hex", (*pseudonyms).switchText, "switch-1"},
		{"long switch", (*pseudonyms).switchText, strings.Repeat("0c", maxSwitchID+1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.replace(p, tt.in)
			if err == nil || got != "" {
				t.Fatalf("%q, error %v, want an error only", got, err)
			}
			if strings.Contains(err.Error(), tt.in) {
				t.Errorf("error %q tells the address", err)
			}
		})
	}
}

func TestPseudonymOfNames(t *testing.T) {
	t.Parallel()
	p := testPseudonyms(t)
	const in = "enx0c42a1651234 up, enx0c42a1651234.100 rocex0c42a10300651234: 0x0c42a1651234 enx0c42 lower_enx0c42a1651234_1"
	const want = "enx0c42a13f21a3 up, enx0c42a13f21a3.100 rocex0c42a103003f21a3: 0x0c42a1651234 enx0c42 lower_enx0c42a13f21a3_1"
	if got := string(p.names([]byte(in))); got != want {
		t.Errorf("names:\n%s\nwant\n%s", got, want)
	}
}

func TestPseudonymsNeedRandomness(t *testing.T) {
	t.Parallel()
	if p, err := newPseudonyms(strings.NewReader("short")); err == nil || p != nil {
		t.Errorf("%v, error %v, want an error only", p, err)
	}
}

// FuzzPseudonymIP: pseudonyms of IP addresses go both ways, so no two
// addresses share one; two addresses have as many bits in common as their
// pseudonyms; private stays private, and so on.
func FuzzPseudonymIP(f *testing.F) {
	for _, pair := range [][2]string{
		{"10.0.0.1", "10.0.1.1"},
		{"172.16.0.1", "172.15.255.255"},
		{"192.168.0.1", "192.169.0.1"},
		{"0.0.0.0", "1.0.0.0"},
		{"223.255.255.255", "224.0.0.0"},
		{"::ffff:10.0.0.1", "::fffe:10.0.0.1"},
		{"::", "::1"},
		{"fe80::1", "fe80:0:0:1::1"},
		{"fe80::e42:a1ff:fe65:1234", "2001:db8::e42:a1ff:fe65:1234"},
		{"2001:db8::c42:a103:65:1234", "2001:db8::c42:a104:65:1234"},
		{"fd00::", "fc00::"},
		{"c42:a165:1234::", "c42:a165:1234::1"},
	} {
		a, b := netip.MustParseAddr(pair[0]), netip.MustParseAddr(pair[1])
		f.Add(bytes.Repeat([]byte{0xa5}, 64), a.AsSlice(), b.AsSlice())
	}
	f.Fuzz(func(t *testing.T, secret, first, second []byte) {
		a, okA := netip.AddrFromSlice(first)
		b, okB := netip.AddrFromSlice(second)
		p, err := newPseudonyms(bytes.NewReader(secret))
		if !okA || !okB || err != nil {
			return
		}
		x, y := p.ip(a), p.ip(b)
		if p.ip(x) != a {
			t.Errorf("%s → %s → %s", a, x, p.ip(x))
		}
		if kindOf(a) != kindOf(x) {
			t.Errorf("%s → %s is of another kind", a, x)
		}
		if a.BitLen() == b.BitLen() && a.Is4In6() == b.Is4In6() && commonBits(first, second) != commonBits(x.AsSlice(), y.AsSlice()) {
			t.Errorf("%s, %s → %s, %s: %d bits in common, then %d", a, b, x, y,
				commonBits(first, second), commonBits(x.AsSlice(), y.AsSlice()))
		}
		if a.Is6() {
			g := p.gid16(a.As16())
			if p.gid16(g) != a.As16() {
				t.Errorf("GID %s → %s → %s", a, netip.AddrFrom16(g), netip.AddrFrom16(p.gid16(g)))
			}
		}
	})
}

// kindOf is what an address must stay.
func kindOf(a netip.Addr) [6]bool {
	a = a.Unmap()
	return [6]bool{a.Is4(), a.IsUnspecified(), a.IsLoopback(), a.IsPrivate(), a.IsLinkLocalUnicast(), a.IsMulticast()}
}

// FuzzPseudonymText: what the parsers take goes both ways and keeps its form,
// its maker and whether it is zero; what they refuse gives nothing.
func FuzzPseudonymText(f *testing.F) {
	for _, s := range []string{
		"0c:42:a1:65:12:34", "00:00:00:00:00:00", "00:00:00:00:00:01", "0a:05:01:14",
		"00:00:10:49:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:65:12:34",
		"0c42:a103:0065:1234", "0000:0000:0000:0000", "fe80:0000:0000:0000:0e42:a1ff:fe65:1234", "34126500038aa142",
		"enx0c42a1651234", "ibx0c42a10300651234.8001", "",
	} {
		f.Add(s)
	}
	p := testPseudonyms(f)
	kinds := map[string]replacement{
		"link": (*pseudonyms).linkText, "GUID": (*pseudonyms).guidText, "GID": (*pseudonyms).gidText,
		"subnet": (*pseudonyms).subnetText, "switch": (*pseudonyms).switchText,
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := p.names(p.names([]byte(s))); string(got) != s {
			t.Errorf("names of %q twice: %q", s, got)
		}
		for name, replace := range kinds {
			once, err := replace(p, s)
			if err != nil {
				if once != "" {
					t.Errorf("%s %q: %q and error %v", name, s, once, err)
				}
				continue
			}
			twice, err := replace(p, once)
			if err != nil || twice != strings.ToLower(s) || len(once) != len(s) {
				t.Errorf("%s %q → %q → %q, %v", name, s, once, twice, err)
			}
			if mac, err := net.ParseMAC(s); name == "link" && err == nil && len(mac) == 6 && !strings.EqualFold(once[:8], s[:8]) {
				t.Errorf("MAC %s → %s has another maker", s, once)
			}
		}
	})
}
