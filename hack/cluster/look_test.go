package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/driver"
)

// status is one of a cluster where much is broken.
func status() *driver.Status {
	return &driver.Status{
		Dir: "/var/tmp/railhead-cluster", Began: time.Date(2026, 11, 21, 19, 0, 0, 0, time.UTC),
		Machines: []driver.Machine{
			{
				Name: "fabric", PID: 1200, Addresses: []string{"10.99.0.1", "fd00:99::1"},
				Services: []box.Status{{Name: "etcd", State: box.Running}, {Name: "kube-apiserver", State: box.Paused}},
			},
			{
				Name: "node1", PID: 31225, Addresses: []string{"10.99.0.11", "fd00:99::11"},
				Services: []box.Status{{Name: "containerd", State: box.Waiting}, {Name: "kubelet", State: box.Stopped}},
				Faults:   []string{"enp11s0f0np0 cut", "enp12s0f0np0 without carrier"},
			},
			{Name: "node2", Addresses: []string{"10.99.0.12", "fd00:99::12"}, Faults: []string{"eth0 not connected"}},
		},
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	if err := printStatus(&got, status()); err != nil {
		t.Fatal(err)
	}
	const want = `cluster in /var/tmp/railhead-cluster, up since 2026-11-21 19:00:00; KUBECONFIG=/var/tmp/railhead-cluster/kubeconfig

MACHINE  PID    ADDRESSES               COMPONENTS                           LINKS
fabric   1200   10.99.0.1,fd00:99::1    etcd running, kube-apiserver paused  good
node1    31225  10.99.0.11,fd00:99::11  containerd waiting, kubelet stopped  enp11s0f0np0 cut, enp12s0f0np0 without carrier
node2    off    10.99.0.12,fd00:99::12                                       eth0 not connected
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestRunning(t *testing.T) {
	t.Parallel()
	if m, err := running(status(), "node1"); err != nil || m.PID != 31225 {
		t.Errorf("%+v, %v, want that of node1", m, err)
	}
	for name, want := range map[string]string{
		"node2": "machine node2 is off: boot it",
		"node9": `machine "node9": want one of fabric, node1, node2`,
	} {
		if _, err := running(status(), name); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestDirFlag wants our flag to be taken where it comes first, and all else to
// be left to kubectl.
func TestDirFlag(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		dir  driver.Dir
		rest string
	}{
		"":                             {"/default", ""},
		"get nodes":                    {"/default", "get nodes"},
		"--dir /one get nodes -o wide": {"/one", "get nodes -o wide"},
		"--dir=/one get nodes":         {"/one", "get nodes"},
		"get nodes --dir /one":         {"/default", "get nodes --dir /one"},
		"--directory /one":             {"/default", "--directory /one"},
		"--dir":                        {"/default", "--dir"},
	} {
		dir, rest := dirFlag("/default", strings.Fields(line))
		if got := strings.Join(rest, " "); dir != want.dir || got != want.rest {
			t.Errorf("%q: %s and %q, want %s and %q", line, dir, got, want.dir, want.rest)
		}
	}
}

func TestCommandOf(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"node1 ls":            "ls",
		"node1 ls -la -- /":   "ls -la -- /",
		"node1 -- ls -la":     "ls -la",
		"node1 --":            "",
		"node1 -- -- strange": "-- strange",
	} {
		if got := strings.Join(commandOf(strings.Fields(line)), " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("KUBECONFIG", "/a/file/of/the/host")
	want := []string{driver.Path, "HOME=/root", "TERM=xterm"}
	if diff := cmp.Diff(want, environment()); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// TestLogs prints what a component said, and names those that said something.
func TestLogs(t *testing.T) {
	t.Parallel()
	dir := driver.Dir(t.TempDir())
	for machine, component := range map[string]string{"fabric": "etcd", "node1": "kubelet"} {
		log := dir.Log(machine, component)
		if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(log, []byte(component+" starts\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"logs":               "fabric/etcd\nnode1/kubelet\n",
		"logs node1/kubelet": "kubelet starts\n",
	} {
		if got, err := run(t, append(strings.Fields(line), "--dir", string(dir))...); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", line, got, err, want)
		}
	}
	if got, err := run(t, "logs", "node2/kubelet", "--dir", string(dir)); err == nil || got != "fabric/etcd\nnode1/kubelet\n" {
		t.Errorf("of what said nothing: %q, %v, want what there is, and an error", got, err)
	}
}
