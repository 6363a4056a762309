package box

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestLinks wants links between machines to go with either.
func TestLinks(t *testing.T) {
	fabric, node := startBox(t, newSpec(t, "fabric")), startBox(t, newSpec(t, "node1"))
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("earned skip: no program ip, which makes links")
	}
	link := exec.CommandContext(t.Context(), "nsenter", "-t", itoa(node.PID()), "-n", "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "n1", "netns", itoa(fabric.PID()))
	if out, err := link.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := sh(t, fabric, "ls /sys/class/net"); got != "lo\nn1" {
		t.Fatalf("links %q", got)
	}
	if err := node.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the link is gone", func() bool { return sh(t, fabric, "ls /sys/class/net") == "lo" })
}

// TestSweep wants machines of a driver that died to end, also those that do
// not by themselves, and their cgroups to go.
func TestSweep(t *testing.T) {
	specs := []Spec{newSpec(t, "node1"), newSpec(t, "node2")}
	var boxes []*Box
	for _, spec := range specs {
		b := startBox(t, spec)
		sh(t, b, `for d in /sys/fs/cgroup /sys/fs/cgroup/*; do [ -e $d/cgroup.procs ] && mkdir -p $d/pods/one; done; true`)
		boxes = append(boxes, b)
	}
	if err := Sweep(filepath.Dir(specs[0].Cgroup)); err != nil {
		t.Fatal(err)
	}
	for i, b := range boxes {
		<-b.Done()
		if dirs := cgroups(t, specs[i].Cgroup); len(dirs) > 0 {
			t.Errorf("left: %q", dirs)
		}
	}
	if err := Sweep(filepath.Dir(specs[0].Cgroup)); err != nil {
		t.Errorf("with nothing there: %v", err)
	}
	for _, path := range []string{"", ".", "/", "system.slice", "railhead-x/../..", "../railhead-x"} {
		if err := Sweep(path); err == nil {
			t.Errorf("Sweep(%q): no error", path)
		}
	}
}

// TestFrozen wants processes that a container runtime has frozen not to keep
// their machine from ending.
func TestFrozen(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	sh(t, b, `if [ -e /sys/fs/cgroup/cgroup.controllers ]; then f=/sys/fs/cgroup/pod/cgroup.freeze on=1; else f=/sys/fs/cgroup/freezer/pod/freezer.state on=FROZEN; fi
		mkdir $(dirname $f); sleep 1000 > /dev/null 2>&1 & echo $! > $(dirname $f)/cgroup.procs; echo $on > $f`)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
