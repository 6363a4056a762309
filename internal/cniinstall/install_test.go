package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/google/go-cmp/cmp"
)

// releases are two builds of the program, and one of another program.
var releases = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "cniinstall"); err != nil {
		return "", err
	}
	releasesDir = dir
	foreign := filepath.Join(dir, "foreign.go")
	err = os.WriteFile(foreign, []byte("package main\n\nfunc main() {}\n"), 0o600)
	for _, build := range [][]string{
		{"-ldflags=-s -w", "-o", filepath.Join(dir, "old"), mainPackage},
		{"-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "new"), mainPackage},
		{"-ldflags=-s -w", "-o", filepath.Join(dir, "foreign"), foreign},
	} {
		cmd := exec.Command("go", append([]string{"build"}, build...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		err = errors.Join(err, cmd.Run())
	}
	return dir, err
})

var releasesDir string

func TestMain(m *testing.M) {
	code := m.Run()
	if releasesDir != "" {
		_ = os.RemoveAll(releasesDir)
	}
	os.Exit(code)
}

// release is the path of a build: old, new or foreign.
func release(t *testing.T, name string) string {
	t.Helper()
	dir, err := releases()
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("SKIPPED: %v; this test builds the program: put the go command into PATH", err)
	}
	return filepath.Join(dir, name)
}

const (
	calico = `{"cniVersion":"0.3.1","name":"k8s-pod-network","plugins":[
		{"type":"calico","ipam":{"type":"calico-ipam"}},
		{"type":"portmap","snat":true,"capabilities":{"portMappings":true}},
		{"type":"bandwidth","capabilities":{"bandwidth":true,"ips":false}}]}`
	flannel = `{"cniVersion":"1.0.0","cniVersions":["0.4.0","1.1.0","2.0.0"],"name":"cbr0","disableCheck":true,"disableGC":true,"plugins":[{"type":"flannel"}]}`
	bridge  = `{"cniVersion":"0.2.0","name":"bridged","type":"bridge","capabilities":{"mac":true}}`
	multus  = `{"cniVersion":"0.3.1","name":"multus-cni-network","type":"multus","delegates":[{"name":"k8s-pod-network","plugins":[{"type":"calico"}]}]}`
	thick   = `{"cniVersion":"1.0.0","name":"multus-cni-network","type":"multus-shim","clusterNetwork":"/host/etc/cni/net.d/00-railhead.conflist"}`
)

// node is a node's two directories and an installer for them.
type node struct {
	*Installer

	t     *testing.T
	clock time.Time
}

func newNode(t *testing.T, files map[string]string) *node {
	t.Helper()
	dir := memoryDir(t)
	n := &node{t: t, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	n.Installer = New(Config{
		Program: release(t, "new"), Socket: "/run/railhead/cni.sock",
		BinDir: filepath.Join(dir, "bin"), ConfDir: filepath.Join(dir, "net.d"),
	})
	n.now = func() time.Time { return n.clock }
	for _, dir := range []string{n.config.BinDir, n.config.ConfDir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.put(files)
	return n
}

// memoryDir is a directory in memory where there is such a thing: hundreds of
// syncs take a busy disk minutes.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "cniinstall") //nolint:usetesting // that is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// put writes files of the directory of networks; the empty ones go.
func (n *node) put(files map[string]string) {
	n.t.Helper()
	for name, content := range files {
		path := filepath.Join(n.config.ConfDir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if content == "" {
			err = os.Remove(path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			n.t.Fatal(err)
		}
	}
}

// copyTo puts a release under a name of the directory of programs.
func (n *node) copyTo(name, of string) {
	n.t.Helper()
	data, err := os.ReadFile(release(n.t, of))
	if err == nil {
		err = os.WriteFile(filepath.Join(n.config.BinDir, name), data, 0o755)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// ensure makes a pass that must succeed.
func (n *node) ensure() State {
	n.t.Helper()
	s, err := n.Ensure(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

// builds are the contents of the releases, read once.
var builds = sync.OnceValue(func() map[string]string {
	known := map[string]string{}
	dir, _ := releases()
	for _, name := range []string{"old", "new", "foreign"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			panic(err)
		}
		known[string(data)] = "<" + name + ">"
	}
	return known
})

// snapshot is every file below both directories, as mode and content.
func (n *node) snapshot() map[string]string {
	n.t.Helper()
	got := map[string]string{}
	root := filepath.Dir(n.config.BinDir)
	var last fs.FileInfo // names of one file come one after the other, mostly
	var content string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if last == nil || !os.SameFile(last, info) {
			said, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(said)
			if name, ok := builds()[content]; ok {
				content = name
			}
			last = info
		}
		rel, err := filepath.Rel(root, path)
		got[rel] = fmt.Sprint(info.Mode(), " ", content)
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return got
}

// programs is a snapshot of the program under all names.
func programs(but ...string) map[string]string {
	want := map[string]string{}
	for _, name := range append(Names(), Program) {
		if !slices.Contains(but, name) {
			want["bin/"+name] = "-rwxr-xr-x <new>"
		}
	}
	return want
}

func (n *node) hasOurs() bool { return n.disk.exists(n.file()) }

// TestNetwork installs beside what is there, reads what came out by libcni, and
// removes it again.
func TestNetwork(t *testing.T) {
	t.Parallel()
	plain := `"name": "railhead",
  "plugins": [
    {
      "type": "railhead-cni",
      "socket": "/run/railhead/cni.sock",
      "clusterNetwork": {
        "file": "%s",
        "name": "%s"
      }
    }
  ]
}
`
	for _, c := range []struct {
		name     string
		files    map[string]string
		phase    Phase
		cluster  ClusterNetwork
		want     string // our file; empty: none
		problems []string
	}{
		{"nothing", nil, Waiting, ClusterNetwork{}, "", nil},
		{"what no runtime reads", map[string]string{"10-a.conflist.bak": calico, "README": "x", "k8s/10.conf": bridge}, Waiting, ClusterNetwork{}, "", nil},
		{"loopback alone", map[string]string{"10-lo.conf": `{"cniVersion":"1.0.0","name":"lo","type":"loopback"}`}, Waiting, ClusterNetwork{}, "", nil},
		{"loopback first", map[string]string{"10-lo.conf": `{"cniVersion":"1.0.0","name":"lo","type":"loopback"}`, "20-bridge.conf": bridge}, Installed, ClusterNetwork{"20-bridge.conf", "bridged"}, "*", nil},
		{"capabilities", map[string]string{"10-calico.conflist": calico}, Installed, ClusterNetwork{"10-calico.conflist", "k8s-pod-network"}, `{
  "cniVersion": "0.3.1",
  "name": "railhead",
  "plugins": [
    {
      "type": "railhead-cni",
      "capabilities": {
        "bandwidth": true,
        "portMappings": true
      },
      "socket": "/run/railhead/cni.sock",
      "clusterNetwork": {
        "file": "10-calico.conflist",
        "name": "k8s-pod-network"
      }
    }
  ]
}
`, nil},
		{
			"versions and verbs",
			map[string]string{"10-flannel.conflist": flannel, "99-loopback.conf": bridge},
			Installed,
			ClusterNetwork{"10-flannel.conflist", "cbr0"},
			"{\n  \"cniVersion\": \"1.0.0\",\n  \"cniVersions\": [\n    \"0.4.0\",\n    \"1.1.0\"\n  ],\n  " + strings.Replace(fmt.Sprintf(plain, "10-flannel.conflist", "cbr0"),
				"\n", "\n  \"disableCheck\": true,\n  \"disableGC\": true,\n", 1), nil,
		},
		{
			"one plugin of old",
			map[string]string{"20-bridge.conf": bridge},
			Installed,
			ClusterNetwork{"20-bridge.conf", "bridged"},
			"{\n  \"cniVersion\": \"0.3.1\",\n  " + strings.Replace(fmt.Sprintf(plain, "20-bridge.conf", "bridged"), "\"socket\"", "\"capabilities\": {\n        \"mac\": true\n      },\n      \"socket\"", 1), nil,
		},
		{
			"plugins of other files",
			map[string]string{"10-a.conflist": `{"cniVersion":"1.1.0","name":"a"}`, "a/10.conf": `{"type":"x"}`},
			Installed,
			ClusterNetwork{"10-a.conflist", "a"},
			"{\n  \"cniVersion\": \"1.1.0\",\n  " + fmt.Sprintf(plain, "10-a.conflist", "a"), nil,
		},
		{
			"the first is broken",
			map[string]string{"05-a.conflist": `{`, "06-b.conf": `{"name":"b"}`, "10-c.json": `{"cniVersion":"9.0.0","name":"c","type":"c"}`},
			Installed,
			ClusterNetwork{"10-c.json", "c"},
			"{\n  \"cniVersion\": \"1.1.0\",\n  " + fmt.Sprintf(plain, "10-c.json", "c"),
			[]string{"05-a.conflist: error parsing configuration list: unexpected end of JSON input; mend or remove it", "06-b.conf: error parsing configuration: missing 'type'"},
		},
		{
			"before ours",
			map[string]string{"00-aaa.conflist": calico},
			Installed,
			ClusterNetwork{"00-aaa.conflist", "k8s-pod-network"},
			"*",
			[]string{"00-aaa.conflist: comes before 00-railhead.conflist"},
		},
		{
			"one that calls us",
			map[string]string{"05-own.conflist": `{"cniVersion":"1.0.0","name":"o","plugins":[{"type":"bridge"},{"type":"railhead-cni"}]}`},
			Waiting,
			ClusterNetwork{},
			"",
			[]string{"05-own.conflist: calls railhead-cni"},
		},
		{"Multus", map[string]string{"00-multus.conf": multus, "10-calico.conflist": calico}, Below, ClusterNetwork{"10-calico.conflist", "k8s-pod-network"}, "", nil},
		{"Multus by another name", map[string]string{"05-meta.conf": multus, "10-calico.conflist": calico}, Below, ClusterNetwork{"10-calico.conflist", "k8s-pod-network"}, "", nil},
		{"Multus that no runtime calls", map[string]string{"70-multus.conf": multus, "10-calico.conflist": calico}, Installed, ClusterNetwork{"10-calico.conflist", "k8s-pod-network"}, "*", nil},
		{
			"Multus that took ours",
			map[string]string{"00-multus.conf": thick, "10-calico.conflist": calico},
			Below,
			ClusterNetwork{"10-calico.conflist", "k8s-pod-network"},
			"*",
			[]string{"00-multus.conf: has our network as the cluster's"},
		},
		{"Cilium alone", map[string]string{"00-railhead.conflist.cilium_bak": "{}", "05-cilium.conflist": flannel}, Installed, ClusterNetwork{"05-cilium.conflist", "cbr0"}, "*", []string{"set its cni.exclusive to false"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, c.files)
			before := n.snapshot()
			s := n.ensure()
			if s.Phase != c.phase || s.Cluster != c.cluster || len(s.Problems) != len(c.problems) {
				t.Errorf("got %+v", s)
			}
			for k, want := range c.problems {
				if k < len(s.Problems) && !strings.Contains(s.Problems[k], want) {
					t.Errorf("problem %q, want %q", s.Problems[k], want)
				}
			}
			if got, err := os.ReadFile(n.file()); c.want != "*" && c.want != string(got) {
				t.Errorf("%v: (-want +got)\n%s", err, cmp.Diff(c.want, string(got)))
			}
			if n.hasOurs() {
				list, err := libcni.NetworkConfFromFile(n.file())
				if err != nil || list.Name != Network || len(list.Plugins) != 1 || list.Plugins[0].Network.Type != Program {
					t.Errorf("libcni reads %+v, %v", list, err)
				}
				if list, err := s.Cluster.Load(n.config.ConfDir); err != nil || list.Name != c.cluster.Name {
					t.Errorf("the cluster's network: %+v, %v", list, err)
				}
			}
			if again := n.ensure(); len(again.Changed) > 0 {
				t.Errorf("the second pass changed %q", again.Changed)
			}
			if _, err := n.Remove(t.Context()); err != nil {
				t.Error(err)
			}
			delete(before, "net.d/00-railhead.conflist.cilium_bak") // it is ours
			if d := cmp.Diff(before, n.snapshot()); d != "" {
				t.Errorf("after removal (-want +got)\n%s", d)
			}
		})
	}
}

// TestLoadRefuses what is not the network that was recorded.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	n := newNode(t, map[string]string{"10-calico.conflist": calico})
	for network, want := range map[ClusterNetwork]string{
		{"10-calico.conflist", "other"}:           `name: "k8s-pod-network", want "other"`,
		{"11-calico.conflist", "k8s-pod-network"}: "no such file",
	} {
		if _, err := network.Load(n.config.ConfDir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), network.File) {
			t.Errorf("%v: got %v", network, err)
		}
	}
}

// TestPrograms finds programs in every condition.
func TestPrograms(t *testing.T) {
	t.Parallel()
	write := func(name, content string, mode fs.FileMode) func(*node) error {
		return func(n *node) error { return os.WriteFile(filepath.Join(n.config.BinDir, name), []byte(content), mode) }
	}
	copied := func(name, of string) func(*node) error {
		return func(n *node) error { n.copyTo(name, of); return nil }
	}
	foreign := map[string]string{"bin/sriov": "-rwxr-xr-x <foreign>"}
	script := map[string]string{"bin/rdma": "-rwx------ #!/bin/sh\n"}
	for _, c := range []struct {
		name   string
		there  func(*node) error
		beside map[string]string // what stays
	}{
		{"nothing", func(*node) error { return nil }, nil},
		{"another project's", copied("sriov", "foreign"), foreign},
		{"another project's script", write("rdma", "#!/bin/sh\n", 0o700), script},
		{"an older release", func(n *node) error {
			n.copyTo(Program, "old")
			for _, name := range Names() {
				if err := os.Link(n.program(), filepath.Join(n.config.BinDir, name)); err != nil {
					return err
				}
			}
			return nil
		}, nil},
		{"copies of an older release", func(n *node) error { n.copyTo("sriov", "old"); n.copyTo("rdma", "old"); return nil }, nil},
		{"copies of this one", func(n *node) error { n.copyTo(Program, "new"); n.copyTo("rdma", "new"); return nil }, nil},
		{"torn", write(Program, "\x7fELF", 0o755), nil},
		{"another mode", func(n *node) error { n.copyTo(Program, "new"); return os.Chmod(n.program(), 0o700) }, nil},
		{"empty", write("ipoib", "", 0o644), nil},
		{"a killed installer's", write(".railhead-cni.railhead.tmp", "half", 0o600), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, nil)
			if err := c.there(n); err != nil {
				t.Fatal(err)
			}
			s := n.ensure()
			var stay, paths []string
			for name := range c.beside {
				stay = append(stay, filepath.Base(name))
				paths = append(paths, filepath.Join(n.config.BinDir, filepath.Base(name)))
			}
			want := programs(stay...)
			maps.Copy(want, c.beside)
			if d := cmp.Diff(want, n.snapshot()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if !slices.Equal(paths, s.Foreign) {
				t.Errorf("foreign %q, want %q", s.Foreign, paths)
			}
			if again := n.ensure(); len(again.Changed) > 0 {
				t.Errorf("the second pass changed %q", again.Changed)
			}
			if _, err := n.Remove(t.Context()); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(c.beside, n.snapshot(), cmpEmpty()); d != "" {
				t.Errorf("after removal (-want +got)\n%s", d)
			}
		})
	}
}

func cmpEmpty() cmp.Option {
	return cmp.FilterValues(func(a, b map[string]string) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())
}

// TestSymlink leaves links of others as they are, and replaces one with our own name.
func TestSymlink(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	elsewhere := release(t, "foreign")
	for _, name := range []string{Program, "sriov"} {
		if err := os.Symlink(elsewhere, filepath.Join(n.config.BinDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := n.ensure()
	if want := filepath.Join(n.config.BinDir, "sriov"); !slices.Equal(s.Foreign, []string{want}) {
		t.Errorf("foreign %q", s.Foreign)
	}
	if info, err := os.Lstat(n.program()); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info, err)
	}
	if data, err := os.ReadFile(elsewhere); err != nil || len(data) < 1000 {
		t.Errorf("what the link leads to: %d bytes, %v", len(data), err)
	}
}

// TestErrors names a path and what to do.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*node)
		want   []string
	}{
		{"no directory of programs", func(n *node) { n.config.BinDir = "/none/bin" }, []string{"/none/bin", "mount the node's directory there"}},
		{"no program", func(n *node) { n.config.Program = "/none/program" }, []string{"/none/program: no such file"}},
		{"another program", func(n *node) { n.config.Program = release(n.t, "foreign") }, []string{"foreign: not railhead/cmd/railhead-cni; name the file"}},
		{"a directory", func(n *node) { _ = os.Mkdir(n.program(), 0o755) }, []string{"bin/railhead-cni: a directory; remove it"}},
		{"read-only", func(n *node) {
			n.disk.before = func(step, _ string) error {
				if step == "create" {
					return syscall.EROFS
				}
				return nil
			}
		}, []string{"install", "bin/", "mount the node's directory so that it can be written"}},
		{"unreadable", func(n *node) {
			n.copyTo("sriov", "new")
			n.put(map[string]string{"10-calico.conflist": ""}) // or ours would be there
			n.disk.before = func(step, path string) error {
				if (step == "read" || step == "identify") && filepath.Base(path) == "sriov" {
					return syscall.EIO
				}
				return nil
			}
		}, []string{"install: identify", "bin/sriov: input/output error"}},
		{"not root", func(n *node) { n.disk.before = func(string, string) error { return syscall.EACCES } }, []string{"run the agent as root"}},
		{"full", func(n *node) {
			n.disk.before = func(step, path string) error {
				if step == "write" && strings.HasPrefix(filepath.Base(path), ".00-") {
					return syscall.ENOSPC
				}
				return nil
			}
		}, []string{"CNI network: write", File, "free some space"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, map[string]string{"10-calico.conflist": calico})
			c.change(n)
			_, err := n.Ensure(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q", err, want)
				}
			}
			if n.hasOurs() {
				t.Error("a network without its program")
			}
		})
	}
	n := newNode(t, nil)
	n.config.ConfDir = "/none/net.d"
	if s := n.ensure(); s.Phase != Waiting {
		t.Errorf("no directory of networks: got %+v", s)
	}
	n.config.BinDir = "/none/bin"
	if _, err := n.Remove(t.Context()); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
}

// failing has one step fail, the k-th from 0, and notes all that are made.
type failing struct {
	at     int
	steps  []string
	failed string // the step and its path; "" while none was
	path   string
}

func (f *failing) before(step, path string) error {
	f.steps = append(f.steps, step+" "+path)
	if len(f.steps) != f.at+1 {
		return nil
	}
	f.failed, f.path = step+" "+path, path
	return syscall.EIO
}

// isTold says whether an error of what failed names its path; to some steps there is
// another way, or nothing changes by them.
func (f *failing) isTold(err error) bool {
	if err == nil {
		return f.failed == "" || strings.HasPrefix(f.failed, "link") || strings.HasPrefix(f.failed, "lstat")
	}
	return strings.Contains(err.Error(), f.path)
}

// TestEveryStepFails lets each step of a pass fail in turn, of the first one and in an
// upgrade. Each file is as it was or as it is to be, whole, at any time, no network is
// there without its program, and the next pass makes all right.
func TestEveryStepFails(t *testing.T) {
	t.Parallel()
	for _, upgrade := range []bool{false, true} {
		for f := (failing{}); f.at == 0 || f.failed != ""; {
			n := newNode(t, map[string]string{"10-calico.conflist": flannel})
			n.copyTo("sriov", "foreign")
			if upgrade {
				n.config.Program = release(t, "old")
				n.ensure()
			}
			n.put(map[string]string{"10-calico.conflist": calico})
			old := n.snapshot()
			n.config.Program = release(t, "new")
			f = failing{at: f.at}
			n.disk.before = f.before
			_, err := n.Ensure(t.Context())
			n.disk.before = nil
			if !f.isTold(err) {
				t.Errorf("%s failed, and it is said %v", f.failed, err)
			}
			torn := n.snapshot()
			if torn["net.d/"+File] != "" && torn["bin/"+Program] == "" {
				t.Errorf("while %s failed: a network without its program", f.failed)
			}
			s := n.ensure()
			now := n.snapshot()
			want := programs("sriov")
			maps.Copy(want, map[string]string{"bin/sriov": "-rwxr-xr-x <foreign>", "net.d/10-calico.conflist": "-rw------- " + calico, "net.d/" + File: now["net.d/"+File]})
			if d := cmp.Diff(want, now); d != "" || len(s.Foreign) != 1 || !strings.Contains(now["net.d/"+File], "k8s-pod-network") {
				t.Errorf("after %s failed: %+v (-want +got)\n%s", f.failed, s, d)
			}
			for path, is := range torn {
				if is != old[path] && is != now[path] {
					t.Errorf("while %s failed: %s is %.80s", f.failed, path, is)
				}
			}
			for path := range old {
				if torn[path] == "" {
					t.Errorf("while %s failed: %s is not there", f.failed, path)
				}
			}
			f.at++
		}
	}
}

// TestEveryStepOfRemovalFails lets each step of a removal fail in turn. The rest is
// removed, the network first, but no program that a runtime is still told to call;
// the next time, all is.
func TestEveryStepOfRemovalFails(t *testing.T) {
	t.Parallel()
	for f := (failing{}); f.at == 0 || f.failed != ""; {
		n := newNode(t, map[string]string{"10-calico.conflist": calico})
		n.copyTo("sriov", "foreign")
		before := n.snapshot()
		n.ensure()
		n.put(map[string]string{File + ".cilium_bak": "{}", "." + File + ".railhead.tmp": "half"})
		f = failing{at: f.at}
		n.disk.before = f.before
		_, err := n.Remove(t.Context())
		n.disk.before = nil
		if !f.isTold(err) {
			t.Errorf("%s failed, and it is said %v", f.failed, err)
		}
		left := n.snapshot()
		_, network := left["net.d/"+File]
		_, program := left["bin/"+Program]
		if network && !program {
			t.Errorf("while %s failed: a network without its program", f.failed)
		}
		for path := range before {
			delete(left, path)
		}
		if err == nil && len(left) > 0 {
			t.Errorf("%s failed, and nobody says what is left: %q", f.failed, left)
		}
		if locked := strings.HasPrefix(f.failed, "lock"); !locked {
			delete(left, rel(f.path))
			if network || err != nil && strings.Contains(err.Error(), "may still name it") {
				delete(left, "bin/"+Program)
			}
			if len(left) > 0 {
				t.Errorf("after %s failed, there is still %q", f.failed, slices.Sorted(maps.Keys(left)))
			}
		}
		if first := slices.IndexFunc(f.steps, func(s string) bool { return strings.HasPrefix(s, "remove ") }); first >= 0 && f.steps[first] != "remove "+n.file() && !strings.HasPrefix(f.failed, "lock") {
			t.Errorf("removed first: %s, want the network", f.steps[first])
		}
		if _, err := n.Remove(t.Context()); err != nil {
			t.Errorf("after %s failed: %v", f.failed, err)
		}
		if d := cmp.Diff(before, n.snapshot()); d != "" {
			t.Errorf("after %s failed (-want +got)\n%s", f.failed, d)
		}
		f.at++
	}
}

// rel is a path as a snapshot has it.
func rel(path string) string {
	return filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
}

// TestNoHardLinks copies where the file system knows no links.
func TestNoHardLinks(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.disk.before = func(step, _ string) error {
		if step == "link" {
			return syscall.EPERM
		}
		return nil
	}
	n.ensure()
	if d := cmp.Diff(programs(), n.snapshot()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if again := n.ensure(); len(again.Changed) > 0 {
		t.Errorf("the second pass changed %q", again.Changed)
	}
}

// TestFasterInstaller has another project bring its program in the very moment
// before ours gets the name.
func TestFasterInstaller(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	path := filepath.Join(n.config.BinDir, "sriov")
	n.disk.before = func(step, at string) error {
		if step == "rename" && at == path {
			n.copyTo("sriov", "foreign")
		}
		return nil
	}
	s := n.ensure()
	want := programs("sriov")
	want["bin/sriov"] = "-rwxr-xr-x <foreign>"
	if d := cmp.Diff(want, n.snapshot()); d != "" || !slices.Equal(s.Foreign, []string{path}) {
		t.Errorf("%q (-want +got)\n%s", s.Foreign, d)
	}
}

// TestInstallersAtOnce has installers of two releases, and one that removes, work
// on one node. Whoever looks sees whole files, and the last word is one of them.
func TestInstallersAtOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t, map[string]string{"10-calico.conflist": calico})
	n.copyTo("sriov", "foreign")
	var all sync.WaitGroup
	for k := range 6 {
		config := n.config
		config.Program = release(t, []string{"old", "new"}[k%2])
		all.Go(func() {
			i := New(config)
			for range 5 {
				pass := i.Ensure
				if k == 5 {
					pass = i.Remove
				}
				if _, err := pass(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for {
		select {
		case <-done:
			s := n.ensure()
			want := programs("sriov")
			want["bin/sriov"] = "-rwxr-xr-x <foreign>"
			got := n.snapshot()
			maps.DeleteFunc(got, func(path, _ string) bool { return strings.HasPrefix(path, "net.d/") })
			if d := cmp.Diff(want, got); d != "" || s.Phase != Installed {
				t.Errorf("%+v (-want +got)\n%s", s, d)
			}
			return
		default:
		}
		for _, path := range []string{n.program(), filepath.Join(n.config.BinDir, "rdma")} {
			if data, err := os.ReadFile(path); err == nil && len(data) < 1<<20 {
				t.Errorf("%s: %d bytes", path, len(data))
			}
		}
		if data, err := os.ReadFile(n.file()); err == nil && !strings.HasSuffix(string(data), "}\n") {
			t.Errorf("half a network: %s", data)
		}
	}
}

// TestLocked waits for another installer no longer than its context.
func TestLocked(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	unlock, err := n.disk.lock(t.Context(), n.config.BinDir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := n.Ensure(ctx); err == nil || !strings.Contains(err.Error(), n.config.BinDir+" is locked by another installer") {
		t.Errorf("got %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	n.ensure()
}

// TestFollows has the cluster's network come, change, go for a moment, go for
// good, and come back; and Multus come before us.
func TestFollows(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	for _, step := range []struct {
		name  string
		files map[string]string
		later time.Duration
		phase Phase
		ours  bool
	}{
		{"nothing yet", nil, time.Hour, Waiting, false},
		{"comes", map[string]string{"10-a.conflist": calico}, 0, Installed, true},
		{"another", map[string]string{"10-a.conflist": flannel}, 0, Installed, true},
		{"gone for a moment", map[string]string{"10-a.conflist": ""}, 0, Waiting, true},
		{"still", nil, 9 * time.Second, Waiting, true},
		{"back", map[string]string{"10-a.conflist": flannel}, 2 * time.Second, Installed, true},
		{"gone again", map[string]string{"10-a.conflist": ""}, time.Hour, Waiting, true},
		{"for good", nil, 10 * time.Second, Waiting, false},
		{"by another name", map[string]string{"20-b.conf": bridge}, 0, Installed, true},
		{"half written", map[string]string{"20-b.conf": `{"name":`}, 0, Waiting, true},
		{"all written", map[string]string{"20-b.conf": bridge}, time.Minute, Installed, true},
		{"Multus comes", map[string]string{"00-multus.conf": multus}, 0, Below, false},
		{"Multus takes ours", map[string]string{"00-multus.conf": thick}, 0, Below, true},
		{"its network goes", map[string]string{"20-b.conf": ""}, 0, Below, true},
		{"for good", nil, time.Minute, Below, false},
		{"Multus goes", map[string]string{"00-multus.conf": "", "20-b.conf": bridge}, 0, Installed, true},
	} {
		n.put(step.files)
		n.clock = n.clock.Add(step.later)
		s := n.ensure()
		if s.Phase != step.phase || n.hasOurs() != step.ours {
			t.Errorf("%s: %v, ours %v; want %v, %v", step.name, s.Phase, n.hasOurs(), step.phase, step.ours)
		}
	}
}
