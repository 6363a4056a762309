package dashboards

import (
	"os"
	"os/exec"
	"testing"
)

// tool finds a program, or says loudly that a test needs it. Where CI is set it
// must be there.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed: %v (Debian has it in the package prometheus)", name, err)
	}
	t.Skipf("NOT TESTED: %s is not installed (Debian has it in the package prometheus)", name)
	return ""
}
