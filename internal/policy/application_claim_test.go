package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

func TestClaimOf(t *testing.T) {
	t.Parallel()
	flexible := AddressNumber{Count: 1, Flexible: true}
	for name, tt := range map[string]struct {
		annotations map[string]string
		noIPv6      bool
		want        *Claim
		errors      string
		warnings    []string
	}{
		"nothing": {annotations: map[string]string{v2beta1.AnnotationPoolNumber: "x"}},
		"single": {
			annotations: map[string]string{v2beta1.AnnotationSubnet: `{"ipv4":["a","b"]}`},
			want:        &Claim{Interfaces: []InterfaceClaim{{Interface: "eth0", IPv4: []string{"a", "b"}}}, Number: flexible, Reclaim: true},
		},
		"several win, named": {
			annotations: map[string]string{
				v2beta1.AnnotationSubnet:      `nonsense`,
				v2beta1.AnnotationSubnets:     `[{"interface":"eth0","ipv4":["a"]},{"interface":"net1","ipv4":["b"],"ipv6":["c"]}]`,
				v2beta1.AnnotationPoolNumber:  "8",
				v2beta1.AnnotationPoolReclaim: "false",
			},
			want: &Claim{
				Interfaces: []InterfaceClaim{{Interface: "eth0", IPv4: []string{"a"}}, {Interface: "net1", IPv4: []string{"b"}, IPv6: []string{"c"}}},
				Number:     AddressNumber{Count: 8},
			},
		},
		"unnamed by place": {
			annotations: map[string]string{v2beta1.AnnotationSubnets: `[{"ipv4":["a"]},{"ipv4":["b"]}]`, v2beta1.AnnotationPoolNumber: "+0"},
			want: &Claim{
				Interfaces: []InterfaceClaim{{Interface: "eth0", IPv4: []string{"a"}}, {Interface: "net1", IPv4: []string{"b"}}},
				Number:     AddressNumber{Flexible: true}, Reclaim: true,
			},
		},
		"family that is off": {
			annotations: map[string]string{v2beta1.AnnotationSubnet: `{"ipv4":["a"],"ipv6":["b"]}`}, noIPv6: true,
			want:     &Claim{Interfaces: []InterfaceClaim{{Interface: "eth0", IPv4: []string{"a"}}}, Number: flexible, Reclaim: true},
			warnings: []string{"annotations[ipam.spidernet.io/subnet].ipv6: has no effect, since enableIPv6 is false in ConfigMap spiderpool-conf"},
		},
		"no JSON": {
			annotations: map[string]string{v2beta1.AnnotationSubnet: `subnet-a`},
			errors:      `annotations[ipam.spidernet.io/subnet]: Invalid value: "subnet-a": is no JSON: want JSON such as {"ipv4":["subnet-a"],"ipv6":[]} (invalid character 's' looking for beginning of value)`,
		},
		"a text and no list": {
			annotations: map[string]string{v2beta1.AnnotationSubnet: `{"ipv4":"a"}`},
			errors:      `annotations[ipam.spidernet.io/subnet]: Invalid value: "{\"ipv4\":\"a\"}": ipv4 is a string, want a list: want JSON such as {"ipv4":["subnet-a"],"ipv6":[]}`,
		},
		"unknown key": {
			annotations: map[string]string{v2beta1.AnnotationSubnets: `[{"interface":"eth0","ip4":["a"]}]`},
			errors:      `annotations[ipam.spidernet.io/subnets]: Invalid value: "[{\"interface\":\"eth0\",\"ip4\":[\"a\"]}]": unknown field "ip4": want JSON such as [{"interface":"eth0","ipv4":["subnet-a"],"ipv6":[]}]`,
		},
		"a list for one interface": {
			annotations: map[string]string{v2beta1.AnnotationSubnet: `["a"]`},
			errors:      `annotations[ipam.spidernet.io/subnet]: Invalid value: "[\"a\"]": is a list, want an object: want JSON such as {"ipv4":["subnet-a"],"ipv6":[]}; a list is for the annotation ipam.spidernet.io/subnets`,
		},
		"an object for several": {
			annotations: map[string]string{v2beta1.AnnotationSubnets: `{"ipv4":["a"]}`},
			errors:      `annotations[ipam.spidernet.io/subnets]: Invalid value: "{\"ipv4\":[\"a\"]}": is an object, want a list: want JSON such as [{"interface":"eth0","ipv4":["subnet-a"],"ipv6":[]}]; an object is for the annotation ipam.spidernet.io/subnet`,
		},
		"neither": {
			annotations: map[string]string{v2beta1.AnnotationSubnet: `true`},
			errors:      `annotations[ipam.spidernet.io/subnet]: Invalid value: "true": is a boolean, want an object: want JSON such as {"ipv4":["subnet-a"],"ipv6":[]}`,
		},
		"cut off": {
			annotations: map[string]string{v2beta1.AnnotationSubnets: `[{"ipv4":["a"`},
			errors:      `annotations[ipam.spidernet.io/subnets]: Invalid value: "[{\"ipv4\":[\"a\"": the JSON ends too early: want JSON such as [{"interface":"eth0","ipv4":["subnet-a"],"ipv6":[]}]`,
		},
		"everything else wrong at once": {
			annotations: map[string]string{
				v2beta1.AnnotationSubnets:     `[{"interface":"eth0","ipv4":["a","a"]},{"interface":"eth0","ipv4":["B_"]},{"interface":"a/b"}]`,
				v2beta1.AnnotationPoolNumber:  "-1",
				v2beta1.AnnotationPoolReclaim: "yes",
			},
			errors: `annotations[ipam.spidernet.io/subnets][0].ipv4[1]: Invalid value: "a": is named twice: want each subnet once
annotations[ipam.spidernet.io/subnets][1].interface: Invalid value: "eth0": is named twice: want each interface once
annotations[ipam.spidernet.io/subnets][1].ipv4[0]: Invalid value: "B_": is no name of a SpiderSubnet: want one of the cluster
annotations[ipam.spidernet.io/subnets][2].interface: Invalid value: "a/b": is no name of an interface: want 1 to 15 letters, digits, ".", "_" or "-", such as eth0 or net1
annotations[ipam.spidernet.io/subnets][2]: Invalid value: "[{\"interface\":\"eth0\",\"ipv4\":[\"a\",\"a\"]},{\"interface\":\"eth0\",\"ipv4\":[\"B_\"]},{\"interface\":\"a/b\"}]": names no subnet for a/b: want one or more in ipv4 or ipv6
annotations[ipam.spidernet.io/ippool-ip-number]: Invalid value: "-1": want how many addresses the pool has, such as "8", or how many more than pods, such as "+2"
annotations[ipam.spidernet.io/ippool-reclaim]: Invalid value: "yes": want "true" (the pool goes with its application) or "false" (it stays)`,
		},
		"some named": {
			annotations: map[string]string{v2beta1.AnnotationSubnets: `[{"interface":"eth0","ipv4":["a"]},{"ipv4":["b"]}]`},
			errors:      `annotations[ipam.spidernet.io/subnets]: Invalid value: "[{\"interface\":\"eth0\",\"ipv4\":[\"a\"]},{\"ipv4\":[\"b\"]}]": 1 of 2 elements name an interface: want all of them or none, which then are eth0, net1, net2 and so on`,
		},
		"empty": {
			annotations: map[string]string{v2beta1.AnnotationSubnets: `[]`},
			errors:      `annotations[ipam.spidernet.io/subnets]: Invalid value: "[]": names no interface: want one or more, or no annotation`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := DefaultConfig()
			config.EnableIPv6 = !tt.noIPv6
			claim, review := ClaimOf(field.NewPath("annotations"), tt.annotations, config)
			if diff := cmp.Diff(tt.want, claim, cmpopts.IgnoreUnexported(InterfaceClaim{})); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
			var errs []string
			for _, err := range review.Errors {
				errs = append(errs, err.Error())
			}
			if diff := cmp.Diff(tt.errors, strings.Join(errs, "\n")); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, review.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseAddressNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"1": 1, "8": 8, "+0": 5, "+2": 7, "9223372036854775807": 1<<63 - 1, "+9223372036854775807": 1<<63 - 1} {
		number, err := ParseAddressNumber(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if got := number.For(5); got != want {
			t.Errorf("%q for 5 pods: %d, want %d", text, got, want)
		}
		if number.String() != text {
			t.Errorf("%q is written as %q", text, number)
		}
	}
	for _, text := range []string{"", "0", "+", "-1", "1.5", "++1", " 1", "1e3", "9223372036854775808", "٣"} {
		if number, err := ParseAddressNumber(text); err == nil {
			t.Errorf("%q is taken for %v", text, number)
		}
	}
}

func TestAutoPoolName(t *testing.T) {
	t.Parallel()
	uid := "5d1f5a9c-7a8f-4f3e-9b3a-0123456fcca4"
	for name, tt := range map[string]struct {
		app, nic string
		version  int64
		want     string
	}{
		"usual":       {"web", "eth0", 4, "auto4-web-eth0-fcca4"},
		"IPv6":        {"web", "net1", 6, "auto6-web-net1-fcca4"},
		"upper case":  {"Web_App", "Net_1", 4, "auto4-web-app-net-1-fcca4"},
		"dots":        {"a.-b..c", "net1.100", 4, "auto4-a-b.c-net1-100-fcca4"},
		"very long":   {strings.Repeat("a", 300), "eth0", 4, "auto4-" + strings.Repeat("a", 233) + "-eth0-fcca4"},
		"cut at dots": {strings.Repeat("a", 232) + ".b", "eth0", 4, "auto4-" + strings.Repeat("a", 232) + "-eth0-fcca4"},
	} {
		got := autoPoolName(Application{Name: tt.app, UID: "5d1f5a9c-7a8f-4f3e-9b3a-0123456fcca4"}, tt.nic, tt.version)
		if got != tt.want {
			t.Errorf("%s: %s, want %s (UID %s)", name, got, tt.want, uid)
		}
		if faults := validation.IsDNS1123Subdomain(got + "-2"); len(faults) > 0 {
			t.Errorf("%s: %s-2 is no name: %v", name, got, faults)
		}
	}
}

// FuzzClaimOf: a claim that is accepted is accepted again as it is understood.
func FuzzClaimOf(f *testing.F) {
	f.Add(`[{"interface":"eth0","ipv4":["a"],"ipv6":["b"]}]`, `{"ipv4":["a"]}`, "+1", "true")
	f.Add(`[{"ipv4":["a"]},{"ipv4":["b"]}]`, `{}`, "8", "false")
	f.Add(`[{"interface":"eth0"}`, `{"ipv4":[""]}`, "+", "")
	f.Fuzz(func(t *testing.T, several, single, number, reclaim string) {
		path := field.NewPath("annotations")
		for _, annotations := range []map[string]string{
			{v2beta1.AnnotationSubnets: several, v2beta1.AnnotationPoolNumber: number, v2beta1.AnnotationPoolReclaim: reclaim},
			{v2beta1.AnnotationSubnet: single, v2beta1.AnnotationPoolNumber: number},
		} {
			claim, review := ClaimOf(path, annotations, DefaultConfig())
			if (claim == nil) == review.OK() {
				t.Fatalf("claim %v with errors %v", claim, review.Errors)
			}
			if claim == nil {
				continue
			}
			var list []subnetNames
			for _, c := range claim.Interfaces {
				list = append(list, subnetNames{c.Interface, c.IPv4, c.IPv6})
			}
			text, err := json.Marshal(list)
			if err != nil {
				t.Fatal(err)
			}
			annotations = map[string]string{v2beta1.AnnotationSubnets: string(text), v2beta1.AnnotationPoolNumber: claim.Number.String()}
			if !claim.Reclaim {
				annotations[v2beta1.AnnotationPoolReclaim] = "false"
			}
			again, review := ClaimOf(path, annotations, DefaultConfig())
			if diff := cmp.Diff(claim, again, cmpopts.IgnoreUnexported(InterfaceClaim{}), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%v\n%s", review.Errors, diff)
			}
		}
	})
}
