package policy

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestMessage wants all errors in the message of a condition, and one that is too
// long cut without half a character.
func TestMessage(t *testing.T) {
	t.Parallel()
	var review Review
	if got := review.Message(); got != "" {
		t.Errorf("of no error the message is %q", got)
	}
	review.refuse(field.NewPath("spec", "subnet"), "x", "want a CIDR")
	review.forbid(field.NewPath("spec", "ips"), "no")
	if got, want := review.Message(), `spec.subnet: Invalid value: "x": want a CIDR; spec.ips: Forbidden: no`; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	for shift := range 3 {
		review.forbid(field.NewPath(strings.Repeat("a", shift)), "%s", strings.Repeat("é", maxMessage))
		if got := review.Message(); len(got) > maxMessage || len(got) < maxMessage-4 || !utf8.ValidString(got) || !strings.HasSuffix(got, "é…") {
			t.Errorf("message of %d bytes, ends with %q", len(got), got[len(got)-8:])
		}
	}
}
