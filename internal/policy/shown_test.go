package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// TestFirstErrors wants few errors as they are, of many the first ones, and the same
// of what was shortened before.
func TestFirstErrors(t *testing.T) {
	t.Parallel()
	at := field.NewPath("a")
	var errs field.ErrorList
	for n := range 2 * mostErrors {
		errs = append(errs, field.Invalid(at.Index(n), "x", "want y"))
	}
	few := errs[:mostErrors+1]
	if diff := cmp.Diff(few, FirstErrors(at, few)); diff != "" {
		t.Errorf("few errors (-want +got):\n%s", diff)
	}
	first := FirstErrors(at, errs)
	if diff := cmp.Diff(few[:mostErrors], first[:mostErrors]); diff != "" || len(first) != mostErrors+1 {
		t.Errorf("%d errors of many (-want +got):\n%s", len(first), diff)
	}
	if got := first[mostErrors].Error(); got != "a: Too many: 20: errors: 10 more than those before" {
		t.Errorf("last error %q", got)
	}
	if diff := cmp.Diff(first, FirstErrors(at, first)); diff != "" {
		t.Errorf("done again (-first +again):\n%s", diff)
	}
	if FirstErrors(at, nil) != nil {
		t.Error("errors of none")
	}
	long := strings.Repeat("é", 1<<17)
	cut := FirstErrors(at, field.ErrorList{field.Invalid(at.Child(long), "x"+long, long)})[0].Error()
	if len(cut) > mostValue+2*mostDetail+100 || strings.Contains(cut, "\ufffd") {
		t.Errorf("error of %d bytes of a long value: %.100q", len(cut), cut)
	}
}

func TestFirstWarnings(t *testing.T) {
	t.Parallel()
	var list []string
	for n := range 2 * mostErrors {
		list = append(list, fmt.Sprint(n))
	}
	if diff := cmp.Diff(list[:mostErrors+1], FirstWarnings(list[:mostErrors+1])); diff != "" {
		t.Errorf("few warnings (-want +got):\n%s", diff)
	}
	first := FirstWarnings(list)
	if diff := cmp.Diff(append(list[:mostErrors:mostErrors], "and 10 more warnings"), first); diff != "" {
		t.Errorf("many warnings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(first, FirstWarnings(first)); diff != "" {
		t.Errorf("done again (-first +again):\n%s", diff)
	}
}

// TestClaimsAtMost wants no more elements than a pod can have interfaces, and short
// errors of many that are wrong.
func TestClaimsAtMost(t *testing.T) {
	t.Parallel()
	elements := func(text string, n int) map[string]string {
		return map[string]string{v2beta1.AnnotationSubnets: "[" + strings.TrimSuffix(strings.Repeat(text+",", n), ",") + "]"}
	}
	at := field.NewPath("a")
	if claim, review := ClaimOf(at, elements(`{"ipv4":["s"]}`, MostInterfaces), DefaultConfig()); !review.OK() || len(claim.Interfaces) != MostInterfaces {
		t.Errorf("as many as there may be: %v", review.Errors)
	}
	for text, want := range map[string]string{
		strings.Repeat(`{},`, MostInterfaces) + `{}`:            "a[ipam.spidernet.io/subnets]: Too many: 154: interfaces: want at most 153",
		strings.Repeat(`{"ipv4":[]},`, MostInterfaces-1) + `{}`: "a[ipam.spidernet.io/subnets]: Too many: 153: errors: 143 more than those before",
		`{"ipv4":[` + strings.Repeat(`"s",`, 1<<16) + `"s"]}`:   "a[ipam.spidernet.io/subnets]: Too many: 65536: errors: 65526 more than those before",
	} {
		_, review := ClaimOf(at, elements(text, 1), DefaultConfig())
		if all := review.Message(); !strings.HasSuffix(all, want) || len(all) > 10<<10 {
			t.Errorf("errors of %d bytes: %.300s\nwant at the end: %s", len(all), all, want)
		}
	}
}

// TestBeginning wants no more bytes than asked for, and no half letter.
func TestBeginning(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "short": "short", "12345678": "12345678", "123456789": "12345…", "1234éé7": "1234…", "ééééé": "éé…"} {
		if got := Beginning(text, 8); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
