package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/spiderpool/v2beta1"
)

func reservedWith(name string, ips ...string) *v2beta1.SpiderReservedIP {
	return &v2beta1.SpiderReservedIP{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v2beta1.ReservedIPSpec{IPs: ips}}
}

func TestReservedRules(t *testing.T) {
	t.Parallel()
	versioned := func(version int64, ips ...string) *v2beta1.SpiderReservedIP {
		r := reservedWith("a", ips...)
		r.Spec.IPVersion = &version
		return r
	}
	for _, tt := range []struct {
		name     string
		reserved *v2beta1.SpiderReservedIP
		want     []string
	}{
		{"good", versioned(4, "10.0.0.1", "10.0.0.9-10.0.0.20"), nil},
		{"none", reservedWith("a"), []string{`spec.ips: Required value: want one or more addresses or ranges "first-last"`}},
		{"none of a family", versioned(4), nil},
		{"version 5", versioned(5, "10.0.0.1"), []string{`spec.ipVersion: Invalid value: 5: want 4 or 6, or leave it out`}},
		{"both families", reservedWith("a", "10.0.0.1", "fd00::1"), []string{
			`spec.ips[1]: Invalid value: "fd00::1": is IPv6, and the first is IPv4: want one family`,
		}},
		{"another family than said", versioned(6, "10.0.0.1"), []string{
			`spec.ips[0]: Invalid value: "10.0.0.1": is IPv4, and ipVersion is 6: want one family`,
		}},
		{"one bad among good", reservedWith("a", "10.0.0.1", "10.0.0.x", "10.0.0.1-10.0.0.3"), []string{
			`spec.ips[1]: Invalid value: "10.0.0.x": "10.0.0.x" is no IP address: want one such as "10.0.0.9" or "fd00::9"`,
			`spec.ips[2]: Invalid value: "10.0.0.1-10.0.0.3": overlaps "10.0.0.1", item 0 of the same list: want each address once`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, saidBy(NewCatalog().Review(tt.reserved, nil)).Errors); diff != "" {
				t.Errorf("Review (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReservedChange(t *testing.T) {
	t.Parallel()
	stored := reservedWith("a", "10.0.0.1")
	NewCatalog().Default(stored)
	changed := reservedWith("a", "fd00::1")
	NewCatalog().Default(changed)
	want := []string{`spec.ipVersion: Forbidden: is immutable: it is 4, not 6; delete the reservation and create another`}
	if diff := cmp.Diff(want, saidBy(NewCatalog().Review(changed, stored)).Errors); diff != "" {
		t.Errorf("Review (-want +got):\n%s", diff)
	}
}

func TestReserved(t *testing.T) {
	t.Parallel()
	c := catalogOf(reservedWith("a", "10.0.0.1-10.0.0.5"), reservedWith("b", "10.0.0.4-10.0.0.9", "nonsense"), reservedWith("c", "fd00::1"))
	before := c.Reserved(4)
	if diff := cmp.Diff([]string{"10.0.0.1-10.0.0.9"}, FormatRanges(before)); diff != "" {
		t.Errorf("IPv4 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"fd00::1"}, FormatRanges(c.Reserved(6))); diff != "" {
		t.Errorf("IPv6 (-want +got):\n%s", diff)
	}
	c.Remove(reservedWith("a"))
	if diff := cmp.Diff([]string{"10.0.0.4-10.0.0.9"}, FormatRanges(c.Reserved(4))); diff != "" {
		t.Errorf("IPv4 without a (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"10.0.0.1-10.0.0.9"}, FormatRanges(before)); diff != "" {
		t.Errorf("the answer before has changed (-want +got):\n%s", diff)
	}
}
