package cnicall

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestStandardLibraryOnly: each call of a container runtime links this anew.
func TestStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("go list: %v; it takes the go command", err)
	}
	if got := strings.Fields(string(list)); len(got) != 1 || got[0] != "railhead/internal/cnicall" {
		t.Errorf("links %q, want the standard library and itself", got)
	}
}
