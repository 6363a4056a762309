package cniinstall

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
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
