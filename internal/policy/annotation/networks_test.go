package annotation

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestNetworks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		text string
		want []Attachment
		errs []string // parts of the errors, in their order
	}{
		{name: "none", text: " "},
		{name: "name", text: "rail0", want: []Attachment{{Name: "rail0"}}},
		{
			name: "short form", text: "ai/rail0@net1, rail1@net2 ,rail1",
			want: []Attachment{{Namespace: "ai", Name: "rail0", Interface: "net1"}, {Name: "rail1", Interface: "net2"}, {Name: "rail1"}},
		},
		{
			name: "JSON", text: `[{"name":"rail0","namespace":"ai","interface":"net1","ips":["10.1.0.5/24"],"mac":"02:42:ac:11:00:02"},{"name":"ib0","infiniband-guid":"0c:42:a1:03:00:65:12:34","x.example/y":1}]`,
			want: []Attachment{
				{
					Namespace: "ai", Name: "rail0", Interface: "net1", IPs: []netip.Prefix{netip.MustParsePrefix("10.1.0.5/24")},
					Requests: Requests{IPs: []string{"10.1.0.5/24"}, MAC: "02:42:ac:11:00:02"},
				},
				{Name: "ib0", Requests: Requests{GUID: "0c:42:a1:03:00:65:12:34"}},
			},
		},
		{
			name: "IPv4 in the form of IPv6", text: `[{"name":"rail0","ips":["::ffff:10.1.0.5","::ffff:10.1.0.6/120"]}]`,
			want: []Attachment{{
				Name: "rail0", IPs: []netip.Prefix{netip.MustParsePrefix("10.1.0.5/32"), netip.MustParsePrefix("10.1.0.6/24")},
				Requests: Requests{IPs: []string{"::ffff:10.1.0.5", "::ffff:10.1.0.6/120"}},
			}},
		},
		{
			name: "IPv4 in the form of IPv6, with a length that is none", text: `[{"name":"rail0","ips":["::ffff:10.1.0.7/64"]}]`,
			errs: []string{"a[0].ips[0]: Invalid value"},
		},
		{name: "empty JSON", text: `[]`},
		{
			name: "one bad item", text: "Rail_0,rail1", want: []Attachment{{Name: "rail1"}},
			errs: []string{`a[0]: Invalid value: "Rail_0": name "Rail_0"`},
		},
		{name: "empty item", text: "rail0,", want: []Attachment{{Name: "rail0"}}, errs: []string{`a[1]: Invalid value: "": names no network: want "name" or "namespace/name"`}},
		{name: "empty namespace", text: "/rail0", errs: []string{"the namespace is empty"}},
		{name: "spaces", text: " ai / rail0 @ net1 ", want: []Attachment{{Namespace: "ai", Name: "rail0", Interface: "net1"}}},
		{name: "no interface", text: "rail0@", errs: []string{`no interface after "@"`}},
		{name: "interface with a colon", text: "rail0@net:1", errs: []string{`interface "net:1": want a name without`}},
		{name: "interface that is a pattern", text: "rail0@net%d", errs: []string{`interface "net%d": want a name without`}},
		{name: "interface of control characters", text: "rail0@\x1bc", errs: []string{`interface "\x1bc": want a name without`}},
		{name: "two slashes", text: "a/b/c", errs: []string{`name "b/c"`}},
		{name: "long interface", text: "rail0@abcdefghijklmnop", errs: []string{`interface "abcdefghijklmnop": it has 16 bytes`}},
		{
			name: "interface twice", text: "rail0@net1,rail1@net1",
			want: []Attachment{{Name: "rail0", Interface: "net1"}, {Name: "rail1", Interface: "net1"}},
			errs: []string{`a[1]: Duplicate value: "net1"`},
		},
		{
			name: "keys in another case, and an old one", text: `[{"Name":"rail0","IPs":["10.1.0.5"],"deviceid":"x","Cni-Args":{"a":1},"ipam-claim-reference":"","interfaceRequest":"net1"}]`,
			want: []Attachment{{
				Name: "rail0", Interface: "net1", IPs: []netip.Prefix{netip.MustParsePrefix("10.1.0.5/32")},
				Requests: Requests{IPs: []string{"10.1.0.5"}, DeviceID: "x", CNIArgs: map[string]json.RawMessage{"a": json.RawMessage("1")}},
			}},
		},
		{
			name: "unknown keys", text: `[{"name":"a"},{"name":"b","x.example/y":1},{"name":"c","ip":["10.1.0.5"],"gateway":{}}]`,
			want: []Attachment{{Name: "a"}, {Name: "b"}},
			errs: []string{
				"a[2].gateway: Forbidden: unknown key with the value {}: want one of name, namespace, interface, ips, mac, infiniband-guid, default-route, portMappings, bandwidth, cni-args, ipam-claim-reference, deviceID",
				`a[2].ip: Forbidden: unknown key with the value ["10.1.0.5"]: did you mean "ips"?`,
			},
		},
		{
			name: "unknown keys below", text: `[{"name":"a","portMappings":[{"hostPort":1,"containerPort":1,"hostIp":""},{"hostPort":1,"containerPort":1,"port":80}],"bandwidth":{"ingressRat":1}}]`,
			errs: []string{
				`a[0].bandwidth.ingressRat: Forbidden: unknown key with the value 1: did you mean "ingressRate"?`,
				`a[0].portMappings[1].port: Forbidden: unknown key with the value 80: want one of hostPort, containerPort, protocol, hostIP`,
			},
		},
		{name: "JSON of one object", text: `{"name":"rail0"}`, errs: []string{"is no JSON list"}},
		{name: "cut short", text: `[{"name":"rail0"`, errs: []string{"is no JSON list"}},
		{
			name: "one bad element", text: `[{"name":5},{"name":"rail1"}]`, want: []Attachment{{Name: "rail1"}},
			errs: []string{`a[0].name: Invalid value: "5": want a text, not a number`},
		},
		{
			name: "wrong types", text: `[{"name":"a","ips":"10.1.0.5"},{"name":"b","IPs":[5]},{"name":"c","portMappings":[{"hostPort":"80"}]},{"name":"d","cni-args":[]},["e"],{"name":"f","deviceID":["x"]}]`,
			errs: []string{
				`a[0].ips: Invalid value: "\"10.1.0.5\"": want a list, not a string`,
				`a[1].ips: Invalid value: "[5]": want a text, not a number`,
				`a[2].portMappings.hostPort: Invalid value: "[{\"hostPort\":\"80\"}]": want a whole number, not a string`,
				`a[3].cni-args: Invalid value: "[]": want an object, not a list`,
				`a[4]: Invalid value: "[\"e\"]": is a list: want an object, such as {"name": …}`,
				`a[5].deviceID: Invalid value: "[\"x\"]": want a text, not a list`,
			},
		},
		{
			name: "wrong names", text: `[{"name":"A"},{"name":"b","namespace":"n_"},{"name":"c","interface":"n 1"}]`,
			errs: []string{`a[0].name: Invalid value: "A": name "A"`, `a[1].namespace: Invalid value: "n_": namespace "n_"`, `a[2].interface: Invalid value: "n 1": interface "n 1": want a name`},
		},
		{name: "no name", text: `[{"namespace":"ai"}]`, errs: []string{"a[0].name: Required value"}},
		{
			name: "bad values", text: `[{"name":"x","ips":["10.1"],"mac":"02:42","infiniband-guid":"02:42:ac:11:00:02","default-route":["x"]}]`,
			errs: []string{"a[0].ips[0]", "a[0].mac", "a[0].infiniband-guid", "a[0].default-route[0]"},
		},
		{
			name: "two default routes", text: `[{"name":"x","default-route":[]},{"name":"y","default-route":["10.1.0.1"]}]`,
			want: []Attachment{{Name: "x", Requests: Requests{DefaultRoute: &[]string{}}}}, errs: []string{"a[1].default-route: Forbidden"},
		},
		{
			name: "a protocol that is meant", text: `[{"name":"x","portMappings":[{"hostPort":80,"containerPort":8080},{"hostPort":81,"containerPort":8080,"protocol":"udp"}]}]`,
			want: []Attachment{{Name: "x", Requests: Requests{PortMappings: []PortMapping{
				{HostPort: 80, ContainerPort: 8080, Protocol: "tcp"}, {HostPort: 81, ContainerPort: 8080, Protocol: "udp"},
			}}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, errs := Networks(field.NewPath("a"), tt.text)
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
				t.Errorf("attachments (-want +got):\n%s", diff)
			}
			checkErrors(t, errs, tt.errs)
		})
	}
}

// checkErrors wants one error for each part, which has it.
func checkErrors(t *testing.T, errs field.ErrorList, parts []string) {
	t.Helper()
	if len(errs) != len(parts) {
		t.Fatalf("errors %v, want %d", errs, len(parts))
	}
	for i, part := range parts {
		if !strings.Contains(errs[i].Error(), part) {
			t.Errorf("error %q, want %q in it", errs[i], part)
		}
	}
}

// FuzzNetworks wants what was understood to be understood again when it is
// written in JSON, and in the short form, which has no addresses and not all
// interfaces.
func FuzzNetworks(f *testing.F) {
	f.Add("ai/rail0@net1, rail1")
	f.Add(`[{"name":"rail0","namespace":"ai","interface":"net1"},{"name":5}]`)
	f.Add("a/b/c@@,")
	f.Add(`[{"name":"rail0","interface":",0"},{"name":"rail1","interface":"[","ips":["fd00::1/64","::ffff:10.1.0.5"]}]`) // signs that the short form divides by
	f.Fuzz(func(t *testing.T, text string) {
		list, _ := Networks(nil, text)
		elements := []map[string]any{}
		var items []string
		short := true
		for _, a := range list {
			ips := []string{}
			for _, ip := range a.IPs {
				ips = append(ips, ip.String())
			}
			elements = append(elements, map[string]any{"name": a.Name, "namespace": a.Namespace, "interface": a.Interface, "ips": ips})
			item := a.Name
			if a.Namespace != "" {
				item = a.Namespace + "/" + item
			}
			if a.Interface != "" {
				item += "@" + a.Interface
			}
			items = append(items, item)
			short = short && !strings.ContainsAny(a.Interface, `,[{"`)
		}
		written, err := json.Marshal(elements)
		if err != nil {
			t.Fatal(err)
		}
		readAgain(t, string(written), list)
		for i := range list {
			list[i].IPs = nil
		}
		if short {
			readAgain(t, strings.Join(items, ","), list)
		}
	})
}

// readAgain wants attachments of a text, whatever else they request, with no errors
// but of interfaces that are asked for twice.
func readAgain(t *testing.T, text string, want []Attachment) {
	t.Helper()
	got, errs := Networks(nil, text)
	for _, err := range errs {
		if err.Type != field.ErrorTypeDuplicate {
			t.Fatalf("%q: %v", text, errs)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}), cmpopts.IgnoreFields(Attachment{}, "Requests")); diff != "" {
		t.Errorf("%q (-first +again):\n%s", text, diff)
	}
}
