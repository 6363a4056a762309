package inventory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
)

// TestReadWhileDevicesVanish reads a node while VFs come and go, which is seen
// at any point of a read. What stays must be complete each time.
func TestReadWhileDevicesVanish(t *testing.T) {
	t.Parallel()
	n := newSimNode(t, simCards{pfs: 1, vfs: 4})
	facts, s := n.read(nil, Changes{})
	restless := n.functions[2:4]
	want := withoutDevices(s, ids(restless)...)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				n.move(restless[i%len(restless)])
			}
		}
	}()
	defer func() {
		close(stop)
		<-stopped
	}()
	for i := range 200 {
		changed := Changes{Names: map[string]bool{restless[0].id: true}}
		if i%2 == 0 {
			changed = everything()
		}
		facts, s = n.read(facts, changed)
		if diff := diff(t, want, withoutDevices(s, ids(restless)...)); diff != "" {
			t.Fatalf("read %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestReadWhileDeviceReturns has a device away when its ports are asked for,
// and back when it is asked for itself, because the kernel said EINVAL. Each of
// the questions about it takes 10 ms.
func TestReadWhileDeviceReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newSimNode(t, simCards{pfs: 1, vfs: 4})
		moving := n.functions[2]
		for _, r := range []fakekernel.Request{fakekernel.GetDevice, fakekernel.GetPort} {
			n.kernel.Delay(r, 10*time.Millisecond, int(moving.device))
		}
		moved := make(chan struct{})
		go func() {
			defer close(moved)
			time.Sleep(15 * time.Millisecond) // all devices are listed
			n.vanish(moving)
			time.Sleep(10 * time.Millisecond) // its ports were asked for
			n.move(moving)
		}()
		_, s := n.read(nil, Changes{})
		<-moved
		if got := n.kernel.Asked(fakekernel.GetDevice); got != 2 {
			t.Errorf("devices were asked for %d times, want 2: all, and the one that was away", got)
		}
		if len(s.Problems) > 0 {
			t.Errorf("problems %q, want none", s.Problems)
		}
		if diff := n.check(s); diff != "" {
			t.Errorf("(-fresh +while it moved):\n%s", diff)
		}
	})
}

func ids(functions []*simFunction) []string {
	return each(functions, func(f *simFunction) string { return f.id })
}

// withoutDevices returns a snapshot without some devices, and without the rails
// that depend on which devices there are.
func withoutDevices(s *Snapshot, ids ...string) *Snapshot {
	rest := *s
	rest.Devices = nil
	for _, d := range s.Devices {
		if !slices.Contains(ids, d.ID) && !slices.Contains(ids, d.Parent) {
			d.Rail = nil
			rest.Devices = append(rest.Devices, d)
		}
	}
	return &rest
}

// TestReadFaults has requests fail. The problems must name what failed, and
// all that does not depend on it must be there.
func TestReadFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		fault    func(n *simNode)
		problems []string // each must have this in it
		affected int      // how many devices may differ
	}{
		{
			name:     "links are refused",
			fault:    func(n *simNode) { n.kernel.Refuse(fakekernel.GetLink, unix.EPERM) },
			problems: []string{"links: RTM_GETLINK: operation not permitted"}, affected: 6,
		},
		{
			name:     "links are interrupted each time",
			fault:    func(n *simNode) { n.kernel.Interrupt(fakekernel.GetLink, 1000) },
			problems: []string{"links: RTM_GETLINK: the list changed while it was read"}, affected: 6,
		},
		{
			name:  "links are interrupted twice",
			fault: func(n *simNode) { n.kernel.Interrupt(fakekernel.GetLink, 2) },
		},
		{
			name:     "addresses are refused",
			fault:    func(n *simNode) { n.kernel.Refuse(fakekernel.GetAddress, unix.ENOMEM) },
			problems: []string{"addresses: RTM_GETADDR: cannot allocate memory", "addresses: RTM_GETADDR: cannot allocate memory"}, affected: 1,
		},
		{
			name:     "RDMA system is refused",
			fault:    func(n *simNode) { n.kernel.Refuse(fakekernel.GetSystem, unix.EPERM) },
			problems: []string{"rdma netlink SYS_GET: operation not permitted"},
		},
		{
			name:     "RDMA devices are refused",
			fault:    func(n *simNode) { n.kernel.Refuse(fakekernel.GetDevice, unix.EPERM) },
			problems: []string{"rdma netlink GET: operation not permitted"}, affected: 6,
		},
		{
			name:     "RDMA devices are interrupted each time",
			fault:    func(n *simNode) { n.kernel.Interrupt(fakekernel.GetDevice, 1000) },
			problems: []string{"rdma netlink GET: the dump was interrupted"},
		},
		{
			name:     "one port is refused",
			fault:    func(n *simNode) { n.kernel.Refuse(fakekernel.GetPort, unix.EIO, int(n.functions[1].device)) },
			problems: []string{"rdma netlink PORT_GET device 1: input/output error", "rdma netlink PORT_GET device 1 port 1: input/output error"},
		},
		{
			name: "the ports of one device cannot be read from sysfs",
			fault: func(n *simNode) {
				ports := "sys/class/infiniband/" + n.functions[1].rdma + "/ports"
				n.remove(ports)
				n.write(ports, "")
			},
			problems: []string{"/ports: not a directory"}, affected: 1,
		},
		{
			name: "netlink lists a device more than sysfs",
			fault: func(n *simNode) {
				f := n.functions[1]
				n.remove("sys/class/infiniband/" + f.rdma)
				n.remove("sys/" + f.path + "/infiniband")
			},
			affected: 1,
		},
		{
			name:  "sysfs shows a device more than netlink",
			fault: func(n *simNode) { n.unlistRDMA(n.functions[1]) }, affected: 1,
		},
		{
			name: "netlink lists a port more than sysfs",
			fault: func(n *simNode) {
				n.changeRDMA(n.functions[1], func(d *rdmanl.Device) {
					d.PortCount = 2
					second := d.Ports[0]
					second.Number = 2
					d.Ports = append(d.Ports, second)
				})
			},
			problems: []string{"RDMA device mlx5_1: netlink shows more ports than the 1 in sysfs"}, affected: 1,
		},
		{
			name:     "settings of one link are refused",
			fault:    func(n *simNode) { n.kernel.Refuse(fakekernel.GetLinkModes, unix.EIO, n.functions[1].link) },
			problems: []string{"ethtool LINKMODES_GET, ifindex 3: netlink receive: input/output error"}, affected: 1,
		},
		{
			name: "a netdev is elsewhere, and nobody can be asked where",
			fault: func(n *simNode) {
				n.remove("proc/thread-self")
				n.move(n.functions[1])
			},
			problems: []string{"looking for 0001:01:02.0 in other network namespaces: our own network namespace"}, affected: 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := newSimNode(t, simCards{pfs: 2, vfs: 2})
			n.addAddress(n.functions[0], n.functions[0].link, n.functions[0].netdev, address(1))
			_, want := n.read(nil, Changes{})
			tt.fault(n)
			_, got := n.read(nil, Changes{})
			problems := strings.Join(got.Problems, "\n")
			if len(got.Problems) != len(tt.problems) {
				t.Errorf("problems:\n%s\nwant %d of them", problems, len(tt.problems))
			}
			for _, p := range tt.problems {
				if !strings.Contains(problems, p) {
					t.Errorf("problems:\n%s\nnone has %q", problems, p)
				}
			}
			checkComplete(t, want, got, tt.affected)
		})
	}
}

// checkComplete wants the same devices, of which some may differ but none lack
// its parts.
func checkComplete(t *testing.T, want, got *Snapshot, affected int) {
	t.Helper()
	if len(want.Devices) != len(got.Devices) {
		t.Fatalf("%d devices, want %d", len(got.Devices), len(want.Devices))
	}
	differ := 0
	for i := range got.Devices {
		w, g := &want.Devices[i], &got.Devices[i]
		if w.ID != g.ID || w.Rail == nil || g.Rail == nil || *w.Rail != *g.Rail {
			t.Errorf("device %d is %s with rail %v, want %s with rail %v", i, g.ID, g.Rail, w.ID, w.Rail)
		}
		if string(encode(t, w)) != string(encode(t, g)) {
			differ++
		}
	}
	if differ > affected {
		t.Errorf("%d devices differ, want at most %d:\n%s", differ, affected, diff(t, want, got))
	}
}

// TestReadManyDevices reads a node of a thousand devices.
func TestReadManyDevices(t *testing.T) {
	t.Parallel()
	n := newSimNode(t, simCards{pfs: 8, vfs: 124})
	facts, s := n.read(nil, Changes{})
	if len(s.Devices) != 1000 || len(s.Problems) != 0 {
		t.Fatalf("%d devices, problems %v, want 1000 and none", len(s.Devices), s.Problems)
	}
	facts, _ = n.read(facts, Changes{}) // which asks for what the dump of settings left out
	f := n.functions[500]
	modes := n.kernel.Asked(fakekernel.GetLinkModes)
	changed := n.changeLink(f.link, func(l *rtnl.Link) { l.MTU = 1500 })
	_, s = n.read(facts, changed)
	if got := n.kernel.Asked(fakekernel.GetLinkModes) - modes; got != 1 {
		t.Errorf("%d netdevs were asked for their settings, want the one that changed", got)
	}
	if diff := n.check(s); diff != "" {
		t.Errorf("(-fresh +changed):\n%s", diff)
	}
}

// mutations of a file, whose directory is there.
var mutations = []func(name string) error{
	func(name string) error { return os.WriteFile(name, nil, 0o644) },
	func(name string) error { return os.WriteFile(name, []byte("\xff\x00 \x1b[0m{]:-1: \n\n"), 0o644) },
	func(name string) error { return os.Truncate(name, 10<<20) },
	os.Remove,
	func(name string) error { return errors.Join(os.Remove(name), os.Mkdir(name, 0o755)) },
}

// TestReadMutatedFiles makes the files of machines in turn empty, garbage or
// huge, removes them or puts a directory in their place. A device of which no
// file was touched must not change.
func TestReadMutatedFiles(t *testing.T) {
	t.Parallel()
	for _, machine := range []string{"mlx5-dual-port", "rxe"} {
		for i := range mutations {
			t.Run(fmt.Sprintf("%s, mutation %d", machine, i), func(t *testing.T) {
				t.Parallel()
				mutateEach(t, machine, func(int) int { return i })
			})
		}
	}
	t.Run("mlx5-roce-vfs, one mutation each", func(t *testing.T) {
		t.Parallel()
		mutateEach(t, "mlx5-roce-vfs", func(file int) int { return file % len(mutations) })
	})
}

// mutateEach mutates one file after the other in the way that which says.
func mutateEach(t *testing.T, machine string, which func(file int) int) {
	t.Helper()
	tree := kerneltest.Tree(t, "testdata/machines/"+machine+".txtar")
	r, err := NewArchiveReader(tree)
	if err != nil {
		t.Fatal(err)
	}
	want := Join(r.Read(nil, Changes{}), Options{})
	for i, name := range filesBelow(t, tree.Path()) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := mutations[which(i)](name); err != nil {
			t.Fatal(err)
		}
		got := Join(r.Read(nil, Changes{}), Options{})
		checkUntouched(t, name, want, got)
		if err := errors.Join(os.RemoveAll(name), os.WriteFile(name, text, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// filesBelow lists those files of a copy of a node that a Reader reads.
func filesBelow(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(root, "sys"), func(name string, entry fs.DirEntry, err error) error {
		isUnused := strings.Contains(name, "counters/") || strings.Contains(name, "/gids/") && len(filepath.Base(name)) > 1
		if err == nil && entry.Type().IsRegular() && !isUnused {
			files = append(files, name)
		}
		return err
	})
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	return files
}

// checkUntouched compares the devices to which a file does not belong, without
// the GPUs, to one of which it may.
func checkUntouched(t *testing.T, name string, want, got *Snapshot) {
	t.Helper()
	var touched []string
	for i := range want.Devices {
		d := &want.Devices[i]
		if slices.Contains(touched, d.Parent) {
			touched = append(touched, d.ID) // its VF or SF, which come after it
		}
		if strings.Contains(name, "/"+d.ID+"/") || strings.Contains(name, "/"+d.RDMAName()+"/") {
			touched = append(touched, d.ID, d.RDMAName()) // under which it is known without its function
		}
		if slices.ContainsFunc(partsOf(d), func(part string) bool { return strings.Contains(name, "/"+part+"/") }) {
			touched = append(touched, d.ID)
		}
	}
	w, g := withoutDevices(want, touched...), withoutDevices(got, touched...)
	for i := range w.Devices {
		w.Devices[i].GPUs = nil
	}
	for i := range g.Devices {
		g.Devices[i].GPUs = nil
	}
	if diff := cmp.Diff(string(encode(t, w.Devices)), string(encode(t, g.Devices))); diff != "" {
		t.Errorf("%s belongs to %v (-want +got):\n%s", name, touched, diff)
	}
}

// partsOf names what has a directory of its own beside that of the device.
func partsOf(d *Device) []string {
	parts := each(d.Netdevs, func(n Netdev) string { return "net/" + n.Name })
	if d.RDMA != nil {
		parts = append(parts, each(d.RDMA.CharDevices, func(c CharDevice) string { return c.Name })...)
	}
	return parts
}

func TestNewArchiveReaderRefusesBadNetlink(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "cut short": `{"links": [`, "another type": `{"links": 5}`} {
		tree := kerneltest.TreeString(t, "-- netlink.json --\n"+text+"\n")
		if _, err := NewArchiveReader(tree); err == nil || !strings.Contains(err.Error(), NetlinkFile) {
			t.Errorf("%s: error %v, want one that names %s", name, err, NetlinkFile)
		}
	}
}

func TestReadNothing(t *testing.T) {
	t.Parallel()
	r, err := NewArchiveReader(kerneltest.TreeString(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if s := Join(r.Read(nil, Changes{}), Options{}); len(s.Devices)+len(s.GPUs)+len(s.Problems) != 0 {
		t.Errorf("an empty tree has %+v", s)
	}
}
