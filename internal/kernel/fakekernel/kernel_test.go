package fakekernel_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"railhead/internal/inventory"
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
)

// answers are what the clients of a Kernel get to hear.
func answers(t *testing.T, k *fakekernel.Kernel) fakekernel.Facts {
	t.Helper()
	links, rdma := k.Links(), k.RDMA()
	settings, err := k.Ethtool()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(links.Close(), rdma.Close(), settings.Close()); err != nil {
			t.Error(err)
		}
	})
	var f fakekernel.Facts
	var errs [5]error
	f.Links, errs[0] = links.Links()
	f.Addresses, errs[1] = links.Addresses()
	f.RDMA, errs[2] = rdma.DevicesWithPorts()
	f.Settings, errs[3] = settings.SettingsAll()
	system, err := rdma.System()
	f.System, errs[4] = &system, err
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestMachines has the clients decode what a Kernel encodes of the machines.
func TestMachines(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../inventory/testdata/machines/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d machines: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := kerneltest.Tree(t, file).ConfigFile(inventory.NetlinkFile, 1<<20)
			if errors.Is(err, fs.ErrNotExist) {
				return // a copy of the files alone
			}
			var n inventory.Netlink
			if err := errors.Join(err, json.Unmarshal(text, &n)); err != nil {
				t.Fatal(err)
			}
			if n.System == nil {
				n.System = &rdmanl.System{NetNSMode: "shared"}
			}
			want := fakekernel.Facts{System: n.System, RDMA: n.RDMA, Links: n.Links, Addresses: n.Addresses, Settings: n.Settings}
			compare(t, want, answers(t, fakekernel.New(want)))
		})
	}
}

// compare ignores the order of addresses, of which clients ask for IPv4 first,
// and the link layer, which is not asked for but concluded.
func compare(t *testing.T, want, got fakekernel.Facts) {
	t.Helper()
	options := cmp.Options{
		cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(rdmanl.Port{}, "LinkLayer"),
		cmpopts.EquateComparable(rtnl.Address{}),
		cmpopts.SortSlices(func(a, b rtnl.Address) bool {
			return a.LinkIndex < b.LinkIndex || a.LinkIndex == b.LinkIndex && a.Prefix.String() < b.Prefix.String()
		}),
	}
	if diff := cmp.Diff(want, got, options); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func facts() fakekernel.Facts {
	return fakekernel.Facts{
		System: &rdmanl.System{NetNSMode: "exclusive", CopyOnFork: new(true), MonitorSupport: new(false)},
		RDMA: []rdmanl.Device{
			{Index: 0, Name: "mlx5_0", PortCount: 1, Ports: []rdmanl.Port{{DeviceName: "mlx5_0", Number: 1, State: "ACTIVE", PhysState: "LINK_UP"}}},
			{Index: 4, Name: "mlx5_1", PortCount: 1, Ports: []rdmanl.Port{{DeviceIndex: 4, DeviceName: "mlx5_1", Number: 1, State: "DOWN", PhysState: "42"}}},
		},
		Links: []rtnl.Link{
			{Index: 1, Name: "lo", Type: 772},
			{Index: 2, Name: "eth0", Type: 1, ParentBus: "pci", ParentDev: "0000:17:00.0", AltNames: []string{"enp23s0"}, Up: true},
			{Index: 7, Name: "eth0.5", Type: 1, Kind: "vlan", VLANID: 5, ParentIndex: 2},
			{Index: 8, Name: "net0", Type: 1, Kind: "ipvlan", Mode: "l3s", ParentIndex: 2, ParentNetNS: new(-1), Group: 77},
		},
		Addresses: []rtnl.Address{
			{LinkIndex: 8, Prefix: netip.MustParsePrefix("172.16.1.2/24"), Broadcast: netip.MustParseAddr("172.16.1.255"), Scope: "global"},
			{LinkIndex: 8, Prefix: netip.MustParsePrefix("2001:db8::2/64"), Scope: "global", NoDAD: true, NoPrefixRoute: true},
		},
		Settings: map[int]ethtool.LinkSettings{
			2: {SpeedMegabits: 800000, MaxSpeedMegabits: 800000, Lanes: 8, Duplex: "full", Port: "fibre", LinkDetected: new(true)},
		},
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	compare(t, facts(), answers(t, fakekernel.New(facts())))
}

func TestChange(t *testing.T) {
	t.Parallel()
	k := fakekernel.New(facts())
	answers(t, k)
	want := facts()
	want.RDMA = want.RDMA[:1]
	k.Change(func(f *fakekernel.Facts) { f.RDMA = f.RDMA[:1] })
	compare(t, want, answers(t, k))
	if got := k.Asked(fakekernel.GetDevice); got != 2 {
		t.Errorf("asked for devices %d times, want 2", got)
	}
}

func TestOneObject(t *testing.T) {
	t.Parallel()
	k := fakekernel.New(facts())
	if l, err := k.Links().Link(2); err != nil || l.Name != "eth0" {
		t.Errorf("link 2 is %q: %v", l.Name, err)
	}
	if _, err := k.Links().Link(3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("link 3: %v, want %v", err, fs.ErrNotExist)
	}
	if d, err := k.RDMA().Device(4); err != nil || d.Name != "mlx5_1" {
		t.Errorf("device 4 is %q: %v", d.Name, err)
	}
	if _, err := k.RDMA().Port(4, 2); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("port 2 of device 4: %v, want %v", err, fs.ErrNotExist)
	}
	c, err := k.Ethtool()
	if err != nil {
		t.Fatal(err)
	}
	if s, err := c.Settings(2); err != nil || s.SpeedMegabits != 800000 {
		t.Errorf("settings of link 2: %v: %v", s, err)
	}
	if s, err := c.Settings(7); err != nil || s != (ethtool.LinkSettings{}) {
		t.Errorf("settings of link 7: %v: %v, want none", s, err)
	}
	if _, err := c.Settings(3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("settings of link 3: %v, want %v", err, fs.ErrNotExist)
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	k := fakekernel.New(facts())
	k.Refuse(fakekernel.GetLink, unix.EPERM)
	if _, err := k.Links().Links(); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("links: %v, want %v", err, fs.ErrPermission)
	}
	k.Refuse(fakekernel.GetLink, 0)
	if links, err := k.Links().Links(); err != nil || len(links) != 4 {
		t.Errorf("%d links: %v, want 4", len(links), err)
	}
	k.Refuse(fakekernel.GetPort, unix.EIO, 4)
	devices, err := k.RDMA().DevicesWithPorts()
	if !errors.Is(err, unix.EIO) || len(devices) != 2 || len(devices[0].Ports) != 1 || len(devices[1].Ports) != 0 {
		t.Errorf("devices %v: %v, want no port of the second and %v", devices, err, unix.EIO)
	}
	k.Refuse(fakekernel.GetLinkModes, unix.EIO, 2)
	c, err := k.Ethtool()
	if err != nil {
		t.Fatal(err)
	}
	if s, err := c.SettingsAll(); !errors.Is(err, unix.EIO) || s[2].Port != "fibre" || s[2].SpeedMegabits != 0 {
		t.Errorf("settings %v: %v, want those of the other commands and %v", s, err, unix.EIO)
	}
}

func TestUnknownRequests(t *testing.T) {
	t.Parallel()
	k := fakekernel.New(facts())
	if _, err := k.Links().Routes(); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("routes: %v, want %v", err, unix.EOPNOTSUPP)
	}
	if err := k.RDMA().MoveToNetNS(0, 3); !errors.Is(err, rdmanl.ErrNotSupported) {
		t.Errorf("move: %v, want %v", err, rdmanl.ErrNotSupported)
	}
	if got := k.Asked(fakekernel.GetLink); got != 0 {
		t.Errorf("asked for links %d times, want 0", got)
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	k := fakekernel.New(facts())
	k.Interrupt(fakekernel.GetLink, 2)
	if links, err := k.Links().Links(); err != nil || len(links) != 4 {
		t.Errorf("%d links: %v, want 4 at the third attempt", len(links), err)
	}
	if got := k.Asked(fakekernel.GetLink); got != 3 {
		t.Errorf("asked %d times, want 3", got)
	}
	k.Interrupt(fakekernel.GetLink, 100)
	if _, err := k.Links().Links(); !errors.Is(err, rtnl.ErrInterrupted) {
		t.Errorf("links: %v, want %v", err, rtnl.ErrInterrupted)
	}
}

func TestWithoutRDMA(t *testing.T) {
	t.Parallel()
	k := fakekernel.New(fakekernel.Facts{})
	if _, err := k.RDMA().System(); !errors.Is(err, rdmanl.ErrNotSupported) {
		t.Errorf("system: %v, want %v", err, rdmanl.ErrNotSupported)
	}
}
