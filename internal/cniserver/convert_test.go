package cniserver

import (
	"encoding/json"
	"net"
	"net/netip"
	"strings"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach"
	"railhead/internal/attach/routing"
	"railhead/internal/policy"
)

func addr(text string) netip.Addr     { return netip.MustParseAddr(text) }
func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

// dual is an interface with everything.
func dual() attach.Interface {
	return attach.Interface{Interface: routing.Interface{
		Name: "eth0", Addresses: []netip.Prefix{prefix("10.0.0.5/24"), prefix("fd00::5/64")},
		Gateways: []netip.Addr{addr("10.0.0.254"), addr("fd00::fe")},
		Routes:   []policy.Route{{Dst: prefix("192.0.2.0/24"), Gw: addr("10.0.0.9")}},
	}}
}

// TestVersions prints a result in every version that is spoken, and again in another.
func TestVersions(t *testing.T) {
	t.Parallel()
	r := resultOfInterface(dual(), attach.Made{Name: "eth0", MAC: macOf("02:00:0a:00:00:05"), MTU: 9000}, "/run/netns/a")
	for _, version := range []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		text, err := printed(r, version)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{`"` + version + `"`, "10.0.0.5/24", "fd00::5/64", "10.0.0.254", "fd00::fe", "0.0.0.0/0", "::/0", "192.0.2.0/24", "02:00:0a:00:00:05"} {
			if !strings.Contains(string(text), word) {
				t.Errorf("%s: %s\nwant %s in it", version, text, word)
			}
		}
		again, err := reprinted(text, "1.0.0")
		if err != nil {
			t.Fatal(err)
		}
		var got types100.Result
		if err := json.Unmarshal(again, &got); err != nil || got.CNIVersion != "1.0.0" || len(got.IPs) != 2 || len(got.Routes) != 3 {
			t.Errorf("%s again in 1.0.0: %s, %v", version, again, err)
		}
	}
	if _, err := printed(r, "9.9.9"); err == nil {
		t.Error("no error for a version that is not spoken")
	}
	if _, err := reprinted(json.RawMessage(`{`), "1.0.0"); err == nil {
		t.Error("no error for an answer that is no JSON")
	}
}

// TestTakeIPAM takes what another's IPAM plugin says, as the reference plugins do.
func TestTakeIPAM(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, result string
		gateways     []netip.Addr
		routes       []policy.Route
	}{
		{name: "a gateway alone is no route", result: `{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.5/24","gateway":"10.0.0.254"}]}`},
		{
			name:     "default route over the gateway",
			result:   `{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.5/24","gateway":"10.0.0.254"}],"routes":[{"dst":"0.0.0.0/0"},{"dst":"192.0.2.1/24"}]}`,
			gateways: []netip.Addr{addr("10.0.0.254")}, routes: []policy.Route{{Dst: prefix("192.0.2.0/24"), Gw: addr("10.0.0.254")}},
		},
		{
			name:     "routes with gateways of their own",
			result:   `{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.5/24"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.0.0.1"},{"dst":"192.0.2.0/24","gw":"10.0.0.2"}]}`,
			gateways: []netip.Addr{addr("10.0.0.1")}, routes: []policy.Route{{Dst: prefix("192.0.2.0/24"), Gw: addr("10.0.0.2")}},
		},
	} {
		var r types100.Result
		if err := json.Unmarshal([]byte(tt.result), &r); err != nil {
			t.Fatal(err)
		}
		var i attach.Interface
		takeIPAM(&i, &r)
		want := attach.Interface{Interface: routing.Interface{Addresses: []netip.Prefix{prefix("10.0.0.5/24")}, Gateways: tt.gateways, Routes: tt.routes}}
		if diff := cmp.Diff(want, i, comparable()...); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.name, diff)
		}
	}
}

// FuzzPrefix: what is read is written the same.
func FuzzPrefix(f *testing.F) {
	f.Add([]byte{10, 0, 0, 5}, []byte{255, 255, 255, 0})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 5}, []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0})
	f.Fuzz(func(t *testing.T, ip, mask []byte) {
		n := net.IPNet{IP: ip, Mask: mask}
		p, ok := prefixOf(n)
		if !ok {
			return
		}
		if again, ok := prefixOf(ipNet(p)); !ok || again != p {
			t.Errorf("%v is %v, and that %v", n, p, again)
		}
		if p.Addr().Is4In6() {
			t.Errorf("%v is %v: want IPv4", n, p)
		}
	})
}
