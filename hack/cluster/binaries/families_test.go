package binaries

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

// testGo is the Go command, with this directory as it is.
var testGo = golang{sources: ".", version: "go1.2.3 amd64"}

func testModule(t *testing.T, g golang, f Family, s source) *module {
	t.Helper()
	m, err := newModule(g, f, s, newLog(t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// goMod is the go.mod file of a family.
func goMod(t *testing.T, m *module) *modfile.File {
	t.Helper()
	mod, err := modfile.Parse("go.mod", []byte(m.files["go.mod"]), nil)
	if err != nil {
		t.Fatal(err)
	}
	return mod
}

// What is not a tool of the module would be gone after go mod tidy.
func TestProgramsAreToolsOfTheirModules(t *testing.T) {
	t.Parallel()
	for f, s := range modules {
		m := testModule(t, testGo, f, s)
		mod := goMod(t, m)
		var tools, want []string
		for _, tool := range mod.Tool {
			tools = append(tools, tool.Path)
		}
		for _, target := range m.targets() {
			if !strings.HasPrefix(target, mod.Module.Mod.Path) {
				want = append(want, target)
			}
		}
		slices.Sort(tools)
		if diff := cmp.Diff(want, tools); diff != "" {
			t.Errorf("%s (-table +go.mod):\n%s", f, diff)
		}
	}
}

// Kubernetes is developed in one repository with the modules of staging/, and
// is only tested with those of its own version.
func TestStagingModulesAreOfTheSameVersion(t *testing.T) {
	t.Parallel()
	m := testModule(t, testGo, Kubernetes, modules[Kubernetes])
	want := strings.Replace(m.versions[kubernetes], "v1.", "v0.", 1)
	count := 0
	for module, version := range m.versions {
		if strings.HasPrefix(module, "k8s.io/") && strings.HasPrefix(version, "v0.") && !strings.HasPrefix(version, "v0.0.0-") {
			count++
			if version != want {
				t.Errorf("%s %s: want %s", module, version, want)
			}
		}
	}
	if count < 20 {
		t.Errorf("found %d modules of Kubernetes", count)
	}
}

func TestLinkerFlags(t *testing.T) {
	t.Parallel()
	m := &module{source: modules[Kubernetes], versions: map[string]string{kubernetes: "v1.36.3"}}
	const version = " -X k8s.io/component-base/version."
	want := "-ldflags=-s -w" + version + "gitVersion=v1.36.3" + version + "gitMajor=1" + version + "gitMinor=36" +
		version + "gitTreeState=clean" + version + "gitCommit="
	if diff := cmp.Diff(want, m.linkerFlags()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKeyChangesWithEveryInput(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*module){
		"nothing":     func(*module) {},
		"go.mod":      func(m *module) { m.files["go.mod"] += "\n" },
		"go.sum":      func(m *module) { m.files["go.sum"] += "\n" },
		"a Go file":   func(m *module) { m.files[filepath.Join("coredns", "main.go")] += "\n" },
		"a new file":  func(m *module) { m.files["new.go"] = "package main" },
		"version":     func(m *module) { m.versions[kubernetes] = "v1.36.4" },
		"Go":          func(m *module) { m.golang.version = "go1.2.4 amd64" },
		"a processor": func(m *module) { m.golang.version = "go1.2.3 arm64" },
		"programs":    func(m *module) { m.programs = map[string]compiled{"kubectl": m.programs["kubectl"]} },
		"stamps":      func(m *module) { m.stamps = m.stamps[1:] },
	}
	seen := map[string]string{}
	for name, change := range changes {
		m := testModule(t, testGo, Kubernetes, modules[Kubernetes])
		change(m)
		k := key(m.inputs())
		if other, taken := seen[k]; taken {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[k] = name
	}
	if again := key(testModule(t, testGo, Kubernetes, modules[Kubernetes]).inputs()); seen[again] != "nothing" {
		t.Errorf("the same inputs have another key, that of %q", seen[again])
	}
}

func TestUnknownFamily(t *testing.T) {
	t.Parallel()
	if _, err := (&maker{}).recipes([]Family{"docker"}); err == nil || !strings.Contains(err.Error(), `"docker": want one of debian, cni,`) {
		t.Errorf("error %v", err)
	}
}

// Who starts a cluster does not wait for what only a benchmark needs.
func TestFamiliesOfClusters(t *testing.T) {
	t.Parallel()
	m := &maker{cache: testCache(t, t.TempDir()), golang: testGo}
	for _, c := range []struct {
		asked, want []Family
	}{
		{nil, []Family{Debian, CNI, Etcd, Containerd, Kubernetes}},
		{[]Family{Multus, CNI}, []Family{CNI, Multus}},
	} {
		recipes, err := m.recipes(c.asked)
		if err != nil {
			t.Fatal(err)
		}
		var got []Family
		for _, r := range recipes {
			got = append(got, r.family())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.asked, diff)
		}
	}
}

func TestExecutable(t *testing.T) {
	t.Parallel()
	for pkg, want := range map[string]string{
		"k8s.io/kubernetes/cmd/kubelet": "kubelet",
		"go.etcd.io/etcd/server/v3":     "server",
		"example.com/v1tools":           "v1tools",
	} {
		if got := executable(pkg); got != want {
			t.Errorf("%s: %s, want %s", pkg, got, want)
		}
	}
}
