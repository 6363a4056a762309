package policy

import (
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/spiderpool/v2beta1"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"10.0.0.1":                                        1,
		"10.0.0.0-10.0.0.255":                             256,
		"10.0.0.0-10.0.0.3,10.0.0.9":                      5,
		"0.0.0.0-255.255.255.255":                         1 << 32,
		"fd00::-fd00::ffff:ffff:ffff":                     1 << 48,
		"fd00::-fd00::7fff:ffff:ffff:fffe":                math.MaxInt64,
		"fd00::-fd00::7fff:ffff:ffff:ffff":                math.MaxInt64,
		"fd00::-fd00::ffff:ffff:ffff:ffff":                math.MaxInt64,
		"fd00::-fdff::":                                   math.MaxInt64,
		"fd00::-fd00::7fff:ffff:ffff:fffe,fd01::-fd01::5": math.MaxInt64,
	} {
		list, review := listOf(nil, strings.Split(text, ","), netip.Prefix{})
		if !review.OK() {
			t.Fatal(review.Errors)
		}
		if got := Count(list.set); got != want {
			t.Errorf("%s: %d addresses, want %d", text, got, want)
		}
	}
}

// TestRangeErrors wants errors to say what was meant, where that is clear.
func TestRangeErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10.60.0.10-20":         `want the whole last address: 10.60.0.10-10.60.0.20`,
		"fd00::10-2f":           `want the whole last address: fd00::10-fd00::2f`,
		"10.60.0.10-":           `"" is no IP address: want one such as "10.0.0.9" or "fd00::9"`,
		"10.60.0.10-256":        `"256" is no IP address: want one such as "10.0.0.9" or "fd00::9"`,
		"10.60.0.010":           `"10.60.0.010" has leading zeros, which some read as octal: want 10.60.0.10`,
		"010.060.000.001":       `"010.060.000.001" has leading zeros, which some read as octal: want 10.60.0.1`,
		"10.60.0.256":           `"10.60.0.256" is no IP address: want one such as "10.0.0.9" or "fd00::9"`,
		"10.60.0.0256":          `"10.60.0.0256" is no IP address: want one such as "10.0.0.9" or "fd00::9"`,
		"10.60.0.30,10.60.0.31": `is several in one text: want 2 items`,
		"10.60.0.0/25":          `a CIDR is not accepted here: want an address or a range "first-last"`,
	} {
		if _, err := parseRange(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"10.60.0.1/24": `"10.60.0.1/24" is no IP address: leave out /24`,
		"x/24":         `"x/24" is no IP address: want one such as "10.0.0.9" or "fd00::9"`,
	} {
		if _, err := parseAddr(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"10.60.0.0/33":  `"10.60.0.0/33" is no CIDR: IPv4 has prefix lengths of at most /32`,
		"fd00::/129":    `"fd00::/129" is no CIDR: IPv6 has prefix lengths of at most /128`,
		"10.060.0.0/24": `"10.060.0.0/24" has leading zeros, which some read as octal: want 10.60.0.0/24`,
		"10.60.0.0/x":   `"10.60.0.0/x" is no CIDR: want one such as "10.0.0.0/24" or "fd00::/64"`,
		"fd00::6::/64":  `"fd00::6::/64" is no CIDR: want one such as "10.0.0.0/24" or "fd00::/64"`,
	} {
		if _, err := parsePrefix(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzParseRange prints what was parsed, and parses that to the same.
func FuzzParseRange(f *testing.F) {
	for _, seed := range []string{"10.0.0.1", "10.0.0.1-10.0.0.9", "fd00::1-fd00::ffff", "10.0.0.9-10.0.0.1", "fe80::1%eth0", "::ffff:10.0.0.1", "10.0.0.0/24", "-", "1-1-1", "10.0.0.1-9", "10.0.0.01", "a,b", "", " 10.0.0.1", "0.0.0.0-255.255.255.255", "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "255.255.255.255-::", "::fffe:ffff:ffff-::1:0:0:0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, item string) {
		r, err := parseRange(item)
		if err != nil {
			if r != (netipx.IPRange{}) {
				t.Errorf("%q: %v beside error %v", item, r, err)
			}
			return
		}
		if !r.IsValid() || r.From().Is4() != r.To().Is4() || r.From().Is4In6() || r.From().Zone() != "" {
			t.Errorf("%q: %v is no range of one family", item, r)
		}
		printed := formatRange(r)
		again, err := parseRange(printed)
		if err != nil || again != r {
			t.Errorf("%q was printed as %q, which is %v, %v", item, printed, again, err)
		}
	})
}

// FuzzPool defaults and reviews any pool beside others. Default is idempotent,
// and an accepted pool keeps what allocation relies on.
func FuzzPool(f *testing.F) {
	f.Add("172.16.11.0/16", "172.16.11.1-172.16.11.200", "", "172.16.11.254", "10.0.0.0/8", "172.16.0.1", "app", "web")
	f.Add("fd00::/64", "fd00::1-fd00::ffff:ffff:ffff:fffe,fd00::", "fd00::5", "fd00::5", "::/0", "fd00::1", "", "")
	f.Add("10.5.0.0/24", "10.5.0.11", "10.5.0.11,10.5.0.11", "10.5.0.1", "", "", "ipam.spidernet.io/app-name", "a")
	f.Add("fd00::/64", "fcff:ffff:ffff:ffff:ffff:ffff:ffff:ffff,fd00::", "", "", "", "", "", "") // neighbours across the subnet's edge
	f.Add("fd00::/64", "fd00::", "fd00::,fcff::-fcff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", "", "", "", "")
	f.Add("0.0.0.0/0", "255.255.255.255,0.0.0.0,128.0.0.0-255.255.255.254", "0.0.0.0,255.255.255.255", "0.0.0.0", "128.0.0.0/1", "255.255.255.255", "", "")
	f.Add("::/0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff,::-7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff,8000::", "::", "::", "::/1", "::", "", "")
	f.Add("10.0.0.0/31", "10.0.0.1,10.0.0.0", "10.0.0.1", "10.0.0.1", "10.0.0.0/32", "10.0.0.0", "", "")
	f.Add("fd00::1/127", "fd00::1,fd00::1", "fd00::-fd00::1", "fd00::", "fd00::/128", "fd00::", "", "")
	f.Add("255.255.255.255/32", "255.255.255.255,::", "", "255.255.255.255", "", "", "", "")
	f.Add("", "255.255.255.255,::,fe80::1%eth0", " ,", "", "::/128", "", "", "")
	f.Add("::ffff:10.0.0.0/100", "::ffff:10.0.0.1", "-", "::", "x", "y", "a/b/c", " ")
	c := catalogOf(
		poolWith("other", "172.16.0.0/16", []string{"172.16.12.1-172.16.12.200"}),
		subnetWith("sub", "10.5.0.0/24", []string{"10.5.0.10-10.5.0.99"}),
	)
	f.Fuzz(func(t *testing.T, subnet, ips, excluded, gateway, dst, gw, key, value string) {
		pool := poolWith("new", subnet, items(ips), func(p *v2beta1.SpiderIPPool) {
			p.Spec.ExcludeIPs = items(excluded)
			if gateway != "" {
				p.Spec.Gateway = &gateway
			}
			if dst != "" {
				p.Spec.Routes = []v2beta1.Route{{Dst: dst, Gw: gw}}
			}
			if key != "" {
				p.Spec.PodAffinity = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
			}
		})
		asWritten, _ := PoolOf(pool)
		c.Default(pool)
		once := pool.DeepCopy()
		if r := c.Default(pool); len(r.Warnings) > 0 {
			t.Errorf("the second Default warns: %q", r.Warnings)
		}
		if diff := cmp.Diff(once, pool); diff != "" {
			t.Errorf("the second Default changes (-once +twice):\n%s", diff)
		}
		parsed, _ := PoolOf(pool)
		if !parsed.Addresses.Equal(asWritten.Addresses) {
			t.Errorf("Default changed the addresses %q to %q", FormatRanges(asWritten.Addresses), FormatRanges(parsed.Addresses))
		}
		if c.Review(pool, nil).OK() {
			accepted(t, parsed)
		}
		if r := c.Review(pool, pool.DeepCopy()); !r.OK() {
			t.Errorf("unchanged and refused: %v", r.Errors)
		}
	})
}

// accepted has what every accepted pool keeps.
func accepted(t *testing.T, pool Pool) {
	t.Helper()
	for _, r := range pool.Addresses.Ranges() {
		if !pool.Subnet.Contains(r.From()) || !pool.Subnet.Contains(r.To()) {
			t.Errorf("%s is not within %s", formatRange(r), pool.Subnet)
		}
	}
	if pool.Gateway.IsValid() && (pool.Addresses.Contains(pool.Gateway) || !pool.Subnet.Contains(pool.Gateway)) {
		t.Errorf("gateway %s of %s with %q", pool.Gateway, pool.Subnet, FormatRanges(pool.Addresses))
	}
	if pool.Addresses.OverlapsRange(netipx.MustParseIPRange("172.16.12.1-172.16.12.200")) {
		t.Errorf("%q overlaps another pool", FormatRanges(pool.Addresses))
	}
	for _, r := range pool.Routes {
		if !pool.Subnet.Contains(r.Gw) || r.Dst != r.Dst.Masked() || r.Dst.Bits() == 0 {
			t.Errorf("route %v of %s", r, pool.Subnet)
		}
	}
}

// items splits a list, which may be empty.
func items(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
