package inventory

import (
	"errors"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

const function = "0000:17:00.2"

// ibDevice is an RDMA device on the function.
func ibDevice(linkLayer string) sysfs.IBDevice {
	return sysfs.IBDevice{Name: "mlx5_2", DevicePath: "devices/pci0000:16/" + function, Ports: []sysfs.IBPort{{Number: 1, LinkLayer: linkLayer}}}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	const network = 0x020000
	withDriver := func(driver string) []sysfs.PCIDevice {
		return []sysfs.PCIDevice{{Address: function, Class: network, Driver: driver}}
	}
	netdev := []rtnl.Link{{Index: 2, Name: "eth0", ParentDev: function}}
	roce, ib := []sysfs.IBDevice{ibDevice(Ethernet)}, []sysfs.IBDevice{ibDevice(InfiniBand)}
	both := map[string]want{function: {netdev: true, rdma: true}}
	tests := []struct {
		name     string
		facts    Facts
		prev     Facts
		isShared bool
		want     map[string]want
	}{
		{name: "nothing there"},
		{name: "all there", facts: Facts{PCI: withDriver("mlx5_core"), IB: roce, Netlink: Netlink{Links: netdev}}},
		{name: "neither", facts: Facts{PCI: withDriver("mlx5_core")}, want: both},
		{name: "neither, of a driver that need not have RDMA", facts: Facts{PCI: withDriver("ice")}, want: both},
		{name: "neither, and no driver", facts: Facts{PCI: withDriver("")}},
		{name: "neither, passed through", facts: Facts{PCI: withDriver("vfio-pci")}},
		{name: "neither, and no network function", facts: Facts{PCI: []sysfs.PCIDevice{{Address: function, Class: 0x010802, Driver: "nvme"}}}},
		{
			name:  "no netdev",
			facts: Facts{PCI: withDriver("mlx5_core"), IB: roce},
			want:  map[string]want{function: {netdev: true}},
		},
		{name: "no netdev, InfiniBand", facts: Facts{PCI: withDriver("mlx5_core"), IB: ib}},
		{
			name: "netdev of another function",
			facts: Facts{PCI: withDriver("erdma"), IB: roce, Netlink: Netlink{
				RDMA: []rdmanl.Device{{Name: "mlx5_2", Ports: []rdmanl.Port{{Number: 1, NetdevIndex: 3}}}},
			}},
		},
		{
			name: "netdev of a virtio device on the function",
			facts: Facts{PCI: withDriver("virtio-pci"), Netdevs: []sysfs.Netdev{
				{Name: "eth0", DevicePath: "devices/pci0000:16/" + function + "/virtio0"},
			}},
		},
		{
			name:  "no RDMA device, of a driver that always has one",
			facts: Facts{PCI: withDriver("mlx5_core"), Netlink: Netlink{Links: netdev}},
			want:  map[string]want{function: {rdma: true}},
		},
		{
			name:     "no RDMA device, shared mode",
			facts:    Facts{PCI: withDriver("mlx5_core"), Netlink: Netlink{Links: netdev}},
			isShared: true,
		},
		{
			name:     "neither, shared mode",
			facts:    Facts{PCI: withDriver("mlx5_core")},
			isShared: true, want: map[string]want{function: {netdev: true}},
		},
		{name: "no RDMA device, of another driver", facts: Facts{PCI: withDriver("ice"), Netlink: Netlink{Links: netdev}}},
		{
			name:  "no RDMA device, of another driver, but one before",
			facts: Facts{PCI: withDriver("ice"), Netlink: Netlink{Links: netdev}},
			prev:  Facts{IB: roce},
			want:  map[string]want{function: {rdma: true}},
		},
		{
			name:  "no RDMA device, of another driver, but one elsewhere before",
			facts: Facts{PCI: withDriver("ice"), Netlink: Netlink{Links: netdev}},
			prev:  Facts{Netlink: Netlink{Elsewhere: []Namespace{{IB: roce}}}},
			want:  map[string]want{function: {rdma: true}},
		},
		{
			name: "subfunction",
			facts: Facts{
				PCI: []sysfs.PCIDevice{{
					Address: function, Class: network, Driver: "mlx5_core", Auxiliary: []sysfs.AuxFunc{{Name: "mlx5_core.sf.4"}},
				}},
				IB: roce, Netlink: Netlink{Links: netdev},
			},
			want: map[string]want{"mlx5_core.sf.4": {netdev: true, rdma: true}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.facts.Netlink.System = &rdmanl.System{NetNSMode: "exclusive"}
			if tt.isShared {
				tt.facts.Netlink.System.NetNSMode = "shared"
			}
			p := &pass{facts: &tt.facts, prev: &tt.prev}
			if diff := cmp.Diff(tt.want, p.missing(), cmpopts.EquateEmpty(), cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAccounted(t *testing.T) {
	t.Parallel()
	link := Namespace{Links: []rtnl.Link{{Name: "net1", ParentDev: function}}}
	roce, ib := Namespace{IB: []sysfs.IBDevice{ibDevice(Ethernet)}}, Namespace{IB: []sysfs.IBDevice{ibDevice(InfiniBand)}}
	both := map[string]want{function: {netdev: true, rdma: true}}
	tests := []struct {
		name    string
		found   []Namespace
		missing map[string]want
		want    bool
	}{
		{"nothing missing", nil, nil, true},
		{"nothing found", nil, both, false},
		{"netdev only", []Namespace{link}, both, false},
		{"netdev only, and that is all", []Namespace{link}, map[string]want{function: {netdev: true}}, true},
		{"RDMA only", []Namespace{roce}, both, false},
		{"RDMA only, InfiniBand", []Namespace{ib}, both, true},
		{"both, in two namespaces", []Namespace{link, roce}, both, true},
		{"those of one function", []Namespace{link, roce}, map[string]want{function: {netdev: true}, "0000:17:00.3": {netdev: true}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := accounted(tt.found, tt.missing); got != tt.want {
				t.Errorf("accounted: %t, want %t", got, tt.want)
			}
		})
	}
}

// TestKeepFound has a file for each namespace that exists.
func TestKeepFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	namespace := func(name string, edit func(*Namespace)) Namespace {
		file := dir + "/" + name
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		id, err := netns.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		n := Namespace{
			ID: id, Path: file,
			IB:    []sysfs.IBDevice{ibDevice(Ethernet), {Name: "mlx5_3", DevicePath: "devices/pci0000:16/0000:17:00.3"}},
			RDMA:  []rdmanl.Device{{Name: "mlx5_2"}, {Name: "mlx5_3"}},
			Links: []rtnl.Link{{Name: "net1", ParentDev: function}, {Name: "net2", ParentDev: "0000:17:00.3"}},
		}
		edit(&n)
		return n
	}
	whole := namespace("whole", func(*Namespace) {})
	came := namespace("one function came back", func(*Namespace) {})
	found := []Namespace{
		whole,
		namespace("another namespace of that name", func(n *Namespace) { n.ID.Ino++ }),
		namespace("gone", func(n *Namespace) { n.Path += " for ever" }),
		came,
		namespace("nothing left", func(n *Namespace) { n.IB, n.Links = n.IB[:0:0], n.Links[1:] }),
	}
	missing := map[string]want{function: {netdev: true, rdma: true}, "0000:17:00.3": {rdma: true}}
	got := keepFound(found, missing)
	for i := range 2 {
		if len(got) != 2 || got[i].ID != []Namespace{whole, came}[i].ID {
			t.Fatalf("kept %+v", got)
		}
		if len(got[i].IB) != 2 || len(got[i].RDMA) != 2 || len(got[i].Links) != 1 || got[i].Links[0].Name != "net1" {
			t.Errorf("kept of it %+v", got[i])
		}
	}
	got = keepFound(found[:1], map[string]want{"0000:17:00.3": {rdma: true}})
	if len(got) != 1 || len(got[0].IB) != 1 || len(got[0].RDMA) != 1 || got[0].RDMA[0].Name != "mlx5_3" || len(got[0].Links) != 0 {
		t.Errorf("of a function that came back: kept %+v", got)
	}
	if len(whole.IB) != 2 || len(whole.Links) != 2 {
		t.Errorf("it changed what was found before: %+v", whole)
	}
}

// inNamespaces runs fn with a node whose only VF has no netdev, and with the one
// other namespace that there is to look into, which is real.
func inNamespaces(t *testing.T, fn func(n *simNode, ns *os.File)) {
	t.Helper()
	kerneltest.NetNS(t, func() {
		n := newSimNode(t, simCards{pfs: 1, vfs: 1})
		n.kernel.Change(func(k *fakekernel.Facts) { k.System.NetNSMode = "shared" }) // so that nobody asks the real kernel for RDMA
		n.move(n.functions[1])
		n.remove("proc/thread-self/ns/net")
		n.must(os.Symlink("/proc/self/ns/net", n.file("proc/thread-self/ns/net")))
		ns := kerneltest.NewNetNS(t)
		n.write("run/netns/pod", "")
		n.must(unix.Mount(procFD(ns), n.file("run/netns/pod"), "", unix.MS_BIND, ""))
		t.Cleanup(func() { _ = unix.Unmount(n.file("run/netns/pod"), unix.MNT_DETACH) }) // if fn has not
		fn(n, ns)
	})
}

// openFiles lists what the process has open.
func openFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil { // but the directory itself
			open = append(open, target)
		}
	}
	slices.Sort(open)
	return open
}

func TestLookLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	inNamespaces(t, func(n *simNode, _ *os.File) {
		facts, _ := n.read(nil, Changes{}) // which opens what stays open, such as the poller of the runtime
		before := openFiles(t)
		for range 3 {
			facts, _ = n.read(facts, Changes{})
			if len(facts.looked.missing) != 1 || len(facts.Problems) != 0 {
				t.Fatalf("it looked for %v, with problems %v", facts.looked.missing, facts.Problems)
			}
		}
		if diff := cmp.Diff(before, openFiles(t)); diff != "" {
			t.Errorf("open files (-before +after):\n%s", diff)
		}
	})
}

// TestLookPinsNothing ends a namespace after it was looked into: the end of a
// veth in it takes its peer here along.
func TestLookPinsNothing(t *testing.T) {
	t.Parallel()
	inNamespaces(t, func(n *simNode, ns *os.File) {
		kerneltest.AddVeth(t, "here", "there")
		kerneltest.MoveLink(t, "there", ns)
		facts, _ := n.read(nil, Changes{})
		if len(facts.Netlink.Elsewhere) != 0 {
			t.Errorf("it found %+v, where there is no hardware", facts.Netlink.Elsewhere)
		}
		n.must(unix.Unmount(n.file("run/netns/pod"), unix.MNT_DETACH))
		n.must(ns.Close())
		kerneltest.AwaitNoLink(t, "here")
	})
}

// TestLookInto goes into a namespace that is another one by now.
func TestLookInto(t *testing.T) {
	t.Parallel()
	inNamespaces(t, func(n *simNode, ns *os.File) {
		id, err := netns.Stat(procFD(ns))
		n.must(err)
		p := &pass{Reader: n.reader, facts: &Facts{}}
		path := n.file("run/netns/pod")
		got, err := p.lookInto(netns.Found{ID: id, Path: path})
		if err != nil || got.ID != id || got.Path != path || len(got.Links) != 0 {
			t.Errorf("looked into %+v, error %v", got, err)
		}
		id.Ino++
		if _, err := p.lookInto(netns.Found{ID: id, Path: path}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a namespace that is another one now: error %v, want %v", err, os.ErrNotExist)
		}
		if _, err := p.lookInto(netns.Found{ID: id, Path: path + " gone"}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a namespace that is gone: error %v, want %v", err, os.ErrNotExist)
		}
	})
}

// TestLookIsNotRepeated changes what has nothing to do with what is missing.
func TestLookIsNotRepeated(t *testing.T) {
	t.Parallel()
	n := newSimNode(t, simCards{pfs: 1, vfs: 3})
	n.move(n.functions[1])
	n.remove("proc/thread-self") // so that a look is a problem
	facts, _ := n.read(nil, Changes{})
	tests := []struct {
		name    string
		last    func(look) look
		change  func() Changes
		isAgain bool
	}{
		{name: "a link", change: func() Changes { return n.setSpeed(n.functions[0], 100000) }},
		{name: "nothing, while someone waits", change: func() Changes { return Changes{} }, isAgain: true},
		{name: "anything", change: everything, isAgain: true},
		{
			name:    "a link, after a look that failed",
			last:    func(l look) look { l.isFailed = true; return l },
			change:  func() Changes { return n.setSpeed(n.functions[0], 400000) },
			isAgain: true,
		},
		{name: "another function lost its netdev", change: func() Changes { return n.move(n.functions[2]) }, isAgain: true},
	}
	for _, tt := range tests {
		last := look{missing: maps.Clone(facts.looked.missing)}
		if tt.last != nil {
			last = tt.last(last)
		}
		facts.looked = last
		after, _ := n.read(facts, tt.change())
		if isAgain := len(after.Problems) > 0; isAgain != tt.isAgain {
			t.Errorf("%s: it looked again: %t, want %t", tt.name, isAgain, tt.isAgain)
		}
	}
}

// TestUnnumbered wants one text of one cause, whichever processes may not be looked
// into, and what else went wrong beside it.
func TestUnnumbered(t *testing.T) {
	t.Parallel()
	other := errors.New("reading /run/netns: no such device")
	const want = "reading /run/netns: no such device\nthose of some processes, which needs CAP_SYS_PTRACE: permission denied"
	for _, denied := range []*netns.DeniedError{{PIDs: []int{1, 7}, Of: 9}, {PIDs: []int{1, 2, 3, 4, 5, 6}, Of: 7}} {
		if got := unnumbered(errors.Join(other, denied)).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := unnumbered(other); !errors.Is(got, other) {
		t.Errorf("%v, want %v", got, other)
	}
}
