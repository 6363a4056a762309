package cniinstall

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// releases are two builds of the program, which differ in a few bytes and not in
// size, and one of another program.
var releases = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "cniinstall"); err != nil {
		return "", err
	}
	releasesDir = dir
	foreign := filepath.Join(dir, "foreign.go")
	err = os.WriteFile(foreign, []byte("package main\n\nfunc main() {}\n"), 0o600)
	for _, build := range [][]string{
		{"-ldflags=-s -w -buildid=old", "-o", filepath.Join(dir, "old"), mainPackage},
		{"-ldflags=-s -w -buildid=new", "-o", filepath.Join(dir, "new"), mainPackage},
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
