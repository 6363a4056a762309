package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestLinksNoKubernetesTypes wants no package in the binary that brings the
// types of all of Kubernetes, which cost each agent 11 MB of memory.
func TestLinksNoKubernetesTypes(t *testing.T) {
	t.Parallel()
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("go list: %v; it takes the go command and the modules", err)
	}
	packages := strings.Fields(string(list))
	if len(packages) == 0 {
		t.Fatal("go list names no packages")
	}
	for _, p := range packages {
		for _, heavy := range []string{"k8s.io/api/", "k8s.io/client-go/kubernetes", "k8s.io/client-go/discovery", "sigs.k8s.io/controller-runtime"} {
			if strings.HasPrefix(p, heavy) {
				t.Errorf("the binary links %s", p)
			}
		}
	}
}
