package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/golden"
	"railhead/internal/inventory"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/sysfs"
)

// machines holds the nodes of archives that were gathered, for all tests.
var machines sync.Map // name → func() *Node

// nodeOf gathers the node of an archive, and returns a copy that the test owns.
func nodeOf(t *testing.T, machine string) *Node {
	t.Helper()
	once, _ := machines.LoadOrStore(machine, sync.OnceValue(func() *Node {
		fsys := kerneltest.Tree(t, filepath.Join("..", "inventory", "testdata", "machines", machine+".txtar"))
		r, err := inventory.NewArchiveReader(fsys)
		if err != nil {
			t.Fatal(err)
		}
		return Gather(fsys, inventory.Join(r.Read(nil, inventory.Changes{All: true}), inventory.Options{}), new(int))
	}))
	return clone(t, once.(func() *Node)())
}

func clone(t *testing.T, n *Node) *Node {
	t.Helper()
	text, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	c := &Node{}
	if err := json.Unmarshal(text, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// fault is a way in which a healthy node goes wrong.
type fault struct {
	name    string
	machine string // which is healthy but for what its archive says; mlx5-roce-8rail by default
	damage  func(*Node)
	wishes  Wishes
	want    []string // IDs of the findings, worst first
}

// device returns the device of a node that an RDMA device or netdev names.
func device(n *Node, name string) *inventory.Device {
	d, ok := n.Inventory.Device(name)
	if !ok {
		panic("there is no device " + name)
	}
	return d
}

func port(n *Node, name string) *inventory.Port { return &device(n, name).RDMA.Ports[0] }

// faults has at least one row for each rule.
var faults = []fault{
	{name: "healthy", want: nil},
	{
		name:   "healthy as wished",
		wishes: Wishes{NetNSMode: "shared"},
	},
	{
		name:   "no hardware",
		damage: func(n *Node) { n.Inventory = &inventory.Snapshot{} },
		want:   []string{"no-rdma-hardware"},
	},
	{
		name: "driver not bound",
		damage: func(n *Node) {
			d := device(n, "mlx5_0")
			d.RDMA, d.Netdevs, d.PCI.Driver = nil, nil, ""
		},
		want: []string{"driver-missing"},
	},
	{
		name: "RDMA module not loaded",
		damage: func(n *Node) {
			for i := range n.Inventory.Devices {
				n.Inventory.Devices[i].RDMA = nil
			}
			n.Modules["mlx5_ib"] = Module{}
		},
		want: []string{"module-missing"},
	},
	{
		name: "RDMA module of a card that may have none",
		damage: func(n *Node) {
			d := device(n, "mlx5_7")
			d.RDMA, d.PCI.Driver = nil, "ice"
		},
		want: []string{"module-missing"},
	},
	{
		name:   "RDMA device missing",
		damage: func(n *Node) { device(n, "mlx5_1").RDMA = nil },
		want:   []string{"rdma-device-missing"},
	},
	{
		name: "RDMA device out of sight in a pod",
		damage: func(n *Node) {
			d := device(n, "mlx5_1")
			d.RDMA = nil
			d.Netdevs[0].NetNS = &inventory.NetNS{ID: netns.ID{Ino: 4026532345}}
		},
	},
	{
		name:   "exclusive mode wished, free to change",
		wishes: Wishes{NetNSMode: "exclusive"},
		want:   []string{"netns-mode"},
	},
	{
		name:   "exclusive mode wished, pods running, ib_core built in",
		wishes: Wishes{NetNSMode: "exclusive"},
		damage: func(n *Node) { *n.OtherNetNS, n.Modules["ib_core"] = 12, Module{Loaded: true, Builtin: true} },
		want:   []string{"netns-mode"},
	},
	{
		name:   "shared mode wished on Red Hat",
		wishes: Wishes{NetNSMode: "shared"},
		damage: func(n *Node) {
			n.Inventory.System.NetNSMode, n.BootNetNSMode, n.Distribution = exclusive, exclusive, []string{"rocky", "rhel", "fedora"}
			*n.OtherNetNS = 1
		},
		want: []string{"netns-mode"},
	},
	{
		name:   "exclusive mode wished, number of pods unknown, set on the command line on Red Hat",
		wishes: Wishes{NetNSMode: "exclusive"},
		damage: func(n *Node) {
			n.OtherNetNS, n.Distribution, n.BootNetNSModeFrom = nil, []string{"rhel"}, commandLine
		},
		want: []string{"netns-mode"},
	},
	{
		name:   "shared mode wished, but the next boot makes it exclusive",
		wishes: Wishes{NetNSMode: "shared"},
		damage: func(n *Node) { n.BootNetNSMode, n.BootNetNSModeFrom = exclusive, "/etc/modprobe.d/rdma.conf" },
		want:   []string{"netns-mode-at-boot"},
	},
	{
		name:   "exclusive mode not kept",
		damage: func(n *Node) { n.Inventory.System.NetNSMode = exclusive },
		want:   []string{"netns-mode-at-boot"},
	},
	{
		name:   "exclusive mode set but not in force",
		damage: func(n *Node) { n.BootNetNSMode, n.BootNetNSModeFrom = exclusive, "/etc/modprobe.d/rdma.conf" },
		want:   []string{"netns-mode-at-boot"},
	},
	{
		name:   "rails of another link layer than wished",
		wishes: Wishes{LinkLayer: inventory.InfiniBand},
		damage: func(n *Node) { onlyRail(n, "mlx5_0") },
		want:   []string{"link-layer"},
	},
	{
		name: "one port of another link layer",
		damage: func(n *Node) {
			p := port(n, "mlx5_3")
			p.LinkLayer, p.GIDs, p.RDMAMTU = inventory.InfiniBand, p.GIDs[:1], 0
		},
		want: []string{"link-layer"},
	},
	{
		name: "port set down",
		damage: func(n *Node) {
			d := device(n, "mlx5_4")
			d.RDMA.Ports[0].State, d.RDMA.Ports[0].PhysState = "DOWN", "DISABLED"
			d.Netdevs[0].Up, d.Netdevs[0].Running = false, false
		},
		want: []string{"port-down"},
	},
	{
		name: "port of no use",
		damage: func(n *Node) {
			d := device(n, "mlx5_4")
			d.RDMA.Ports[0].State, d.RDMA.Ports[0].PhysState = "DOWN", "DISABLED"
			d.Netdevs[0].Up, d.Netdevs[0].Running, d.Netdevs[0].Addresses = false, false, nil
		},
		want: []string{"port-down"},
	},
	{
		name:    "member of a bond down",
		machine: "mlx5-bond",
		damage:  func(n *Node) { device(n, "enp152s0f1np1").Netdevs[0].Running = false },
		want:    []string{"bond-member-down"},
	},
	{
		name:   "port down with a carrier",
		damage: func(n *Node) { port(n, "mlx5_4").State = "DOWN" },
		want:   []string{"port-down"},
	},
	{
		name:    "InfiniBand port without a link",
		machine: "mlx5-ib-ipoib",
		damage:  func(n *Node) { port(n, "mlx5_1").PhysState = "POLLING" },
		want:    []string{"port-down", "gdrdrv-missing"},
	},
	{
		name: "netdev in a pod without its RDMA device",
		damage: func(n *Node) {
			d := device(n, "mlx5_2")
			d.Netdevs[0].NetNS = &inventory.NetNS{ID: netns.ID{Ino: 4026532345}, Path: "/run/netns/cni-1"}
			d.RDMA.Ports[0].Netdev, d.RDMA.Ports[0].MTU, d.RDMA.Ports[0].RDMAMTU = "", 0, 0
			n.Inventory.System.NetNSMode, n.BootNetNSMode = exclusive, exclusive
		},
		want: []string{"port-without-netdev"},
	},
	{
		name: "netdev in a pod in shared mode",
		damage: func(n *Node) {
			d := device(n, "mlx5_2")
			d.Netdevs[0].NetNS = &inventory.NetNS{ID: netns.ID{Ino: 4026532345}}
			d.RDMA.Ports[0].Netdev, d.RDMA.Ports[0].MTU, d.RDMA.Ports[0].RDMAMTU = "", 0, 0
		},
	},
	{
		name:   "GUID of a PF zero",
		damage: func(n *Node) { device(n, "mlx5_2").RDMA.NodeGUID = "0000:0000:0000:0000" },
		want:   []string{"guid-zero"},
	},
	{
		name:    "GUID of a VF zero",
		machine: "mlx5-roce-vfs",
		want:    []string{"guid-zero"},
	},
	{
		name: "address without GID",
		damage: func(n *Node) {
			d := device(n, "mlx5_5")
			d.Netdevs[0].Addresses = append(d.Netdevs[0].Addresses, netip.MustParsePrefix("2001:db8::5/64"))
		},
		want: []string{"gid-missing"},
	},
	{
		name: "GID table full",
		damage: func(n *Node) {
			p := port(n, "mlx5_5")
			p.GIDTableLen = len(p.GIDs)
		},
		want: []string{"gid-table-full"},
	},
	{
		name:   "slow port that is no rail",
		damage: func(n *Node) { port(n, "mlx5_6").Gigabits = 200; device(n, "mlx5_6").Rail = nil },
		want:   []string{"speed-below-card"},
	},
	{
		name:    "all InfiniBand ports slower than their type",
		machine: "mlx5-ib-ipoib",
		damage: func(n *Node) {
			for _, name := range []string{"mlx5_0", "mlx5_1"} {
				p := port(n, name)
				p.State, p.Gigabits, p.Lanes, p.Speed = "ACTIVE", 200, 4, "HDR"
			}
		},
		want: []string{"speed-below-card", "speed-below-card", "gdrdrv-missing"},
	},
	{
		name:   "slow port",
		damage: func(n *Node) { port(n, "mlx5_6").Gigabits = 200 },
		want:   []string{"speed-below-card"},
	},
	{
		name:    "InfiniBand port slower than its peer",
		machine: "mlx5-ib-ipoib",
		damage: func(n *Node) {
			p := port(n, "mlx5_1")
			p.State, p.Gigabits, p.Lanes, p.Speed = "ACTIVE", 100, 1, "NDR"
		},
		want: []string{"speed-below-card", "gdrdrv-missing"},
	},
	{
		name:   "narrow PCIe link",
		damage: func(n *Node) { device(n, "mlx5_6").PCI.Link.Lanes = 4 },
		want:   []string{"pcie-below-card"},
	},
	{
		name: "PCIe link slower than the card but not than its port",
		damage: func(n *Node) {
			d := device(n, "mlx5_6")
			d.PCI.Link.GigaTransfers, d.RDMA.Ports[0].Gigabits, d.RDMA.Ports[0].MaxGigabits = 16, 200, 200
			n.Inventory.Devices = []inventory.Device{*d}
		},
		want: []string{"pcie-below-card"},
	},
	{
		name:   "small MTU",
		damage: func(n *Node) { port(n, "mlx5_6").MTU, port(n, "mlx5_6").RDMAMTU = 1500, 1024 },
		want:   []string{"mtu-below-card"},
	},
	{
		name:   "another MTU",
		damage: func(n *Node) { port(n, "mlx5_6").MTU = 4200 },
		want:   []string{"mtu-differs"},
	},
	{
		name:   "another firmware",
		damage: func(n *Node) { device(n, "mlx5_6").RDMA.Firmware = "28.36.1010" },
		want:   []string{"firmware-differs"},
	},
	{
		name: "ib_uverbs not loaded",
		damage: func(n *Node) {
			for i := range n.Inventory.Devices {
				n.Inventory.Devices[i].RDMA.CharDevices = nil
			}
			n.Modules["ib_uverbs"] = Module{}
		},
		want: []string{"char-device-missing"},
	},
	{
		name:   "ib_uverbs silent about one device",
		damage: func(n *Node) { device(n, "mlx5_0").RDMA.CharDevices = nil },
		want:   []string{"char-device-missing"},
	},
	{
		name:   "uverbs not in /dev",
		damage: func(n *Node) { device(n, "mlx5_0").RDMA.CharDevices[0].Exists = false },
		want:   []string{"char-device-missing"},
	},
	{
		name:   "no /dev/infiniband",
		damage: func(n *Node) { n.HasDevInfiniBand = false },
		want:   []string{"char-device-missing"},
	},
	{
		name:    "umad not in /dev",
		machine: "mlx5-ib-ipoib",
		damage: func(n *Node) {
			port(n, "mlx5_1").State = "ACTIVE"
			chars := device(n, "mlx5_0").RDMA.CharDevices
			chars[slices.IndexFunc(chars, func(c inventory.CharDevice) bool { return c.Name == "umad0" })].Exists = false
		},
		want: []string{"char-device-missing", "gdrdrv-missing"},
	},
	{
		name:    "ib_umad not loaded",
		machine: "mlx5-ib-ipoib",
		damage: func(n *Node) {
			for i := range n.Inventory.Devices {
				r := n.Inventory.Devices[i].RDMA
				r.Ports[0].State = "ACTIVE"
				r.CharDevices = slices.DeleteFunc(r.CharDevices, func(c inventory.CharDevice) bool { return c.Port > 0 })
			}
			n.Modules["ib_umad"] = Module{}
		},
		want: []string{"char-device-missing", "gdrdrv-missing"},
	},
	{
		name:   "rdma_ucm not loaded",
		damage: func(n *Node) { n.ConnectionDevice, n.Modules["rdma_ucm"] = false, Module{} },
		want:   []string{"char-device-missing"},
	},
	{
		name:   "rdma_cm not in /dev",
		damage: func(n *Node) { n.ConnectionDevice = false },
		want:   []string{"char-device-missing"},
	},
	{
		name:   "little memory to lock",
		damage: func(n *Node) { n.Runtimes[0].Memlock = &sysfs.Limit{Soft: 8 << 20, Hard: 8 << 20} },
		want:   []string{"memlock-limit"},
	},
	{
		name:   "VFs wished, none made, enough possible",
		wishes: Wishes{VFs: 8},
		damage: func(n *Node) { device(n, "mlx5_1").SRIOV.NumVFs = 4; onlyRail(n, "mlx5_0", "mlx5_1") },
		want:   []string{"vfs-wanted", "vfs-wanted"},
	},
	{
		name:   "more VFs wished than the firmware offers",
		wishes: Wishes{VFs: 64},
		damage: func(n *Node) { device(n, "mlx5_1").SRIOV = nil; onlyRail(n, "mlx5_0", "mlx5_1") },
		want:   []string{"vfs-wanted", "vfs-wanted"},
	},
	{
		name:    "VF without driver",
		machine: "mlx5-roce-vfs",
		damage: func(n *Node) {
			vf := device(n, "mlx5_9")
			device(n, vf.Parent).SRIOV.AutoprobeVFs = false
			vf.RDMA, vf.PCI.Driver = nil, ""
		},
		want: []string{"vfs-unbound"},
	},
	{
		name: "two rails in one subnet",
		damage: func(n *Node) {
			device(n, "mlx5_1").Netdevs[0].Addresses = nil
			moveTo(n, "mlx5_1", "172.16.11.9/24")
		},
		want: []string{"duplicate-subnet"},
	},
	{
		name:   "two addresses of one subnet on one rail",
		damage: func(n *Node) { moveTo(n, "mlx5_1", "172.16.12.77/24") },
	},
	{
		name: "two rails in one subnet, set up for it",
		damage: func(n *Node) {
			moveTo(n, "mlx5_1", "172.16.11.9/24")
			for _, d := range []string{"mlx5_0", "mlx5_1"} {
				n.IPv4Conf[port(n, d).Netdev] = IPv4Conf{ARPIgnore: 1, ARPAnnounce: 2}
			}
		},
	},
	{
		name:   "strict reverse path filter",
		damage: func(n *Node) { n.IPv4Conf[port(n, "mlx5_1").Netdev] = IPv4Conf{RPFilter: 1} },
		want:   []string{"rp-filter"},
	},
	{
		name:   "strict reverse path filter on the only rail",
		damage: func(n *Node) { onlyRail(n, "mlx5_1"); n.IPv4Conf[port(n, "mlx5_1").Netdev] = IPv4Conf{RPFilter: 1} },
	},
	{
		name:   "no peer memory",
		damage: func(n *Node) { delete(n.Modules, "nvidia_peermem"); delete(n.Modules, "gdrdrv") },
		want:   []string{"nvidia-peermem-missing", "gdrdrv-missing"},
	},
	{
		name:   "no peer memory with the open driver",
		damage: func(n *Node) { delete(n.Modules, "nvidia_peermem"); n.OpenGPUDriver = true },
		want:   []string{"nvidia-peermem-missing"},
	},
	{
		name: "k3s without NRI",
		damage: func(n *Node) {
			n.Runtimes = []Runtime{{Name: "containerd", CDI: true, Version: 3, Config: "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"}}
		},
		want: []string{"nri-off"},
	},
	{
		name:   "containerd without NRI and CDI",
		damage: func(n *Node) { n.Runtimes = []Runtime{{Name: "containerd", PID: 9, Version: 2}} },
		want:   []string{"nri-off", "cdi-off"},
	},
	{
		name: "CRI-O without NRI",
		damage: func(n *Node) {
			n.Runtimes = []Runtime{{Name: "crio", PID: 9, CDI: true, Config: "/etc/crio/crio.conf"}}
		},
		want: []string{"nri-off"},
	},
	{
		name:   "something unreadable",
		damage: func(n *Node) { n.Problems = []string{"/proc/9/limits: permission denied"} },
		want:   []string{"unreadable"},
	},
}

// onlyRail leaves the given devices their rails.
func onlyRail(n *Node, names ...string) {
	for i := range n.Inventory.Devices {
		if d := &n.Inventory.Devices[i]; !slices.Contains(names, d.RDMA.Name) {
			d.Rail = nil
		}
	}
}

// moveTo gives a device one more address, with its GID.
func moveTo(n *Node, name, address string) {
	d := device(n, name)
	a := netip.MustParsePrefix(address)
	d.Netdevs[0].Addresses = append(d.Netdevs[0].Addresses, a)
	p := &d.RDMA.Ports[0]
	p.GIDs = append(p.GIDs, inventory.GID{Index: 7, Type: roceV2, Address: a.Addr()})
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			n := f.node(t)
			findings := Run(n, f.wishes)
			var ids []string
			for _, finding := range findings {
				ids = append(ids, finding.ID)
			}
			if diff := cmp.Diff(f.want, ids); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			compareGolden(t, strings.ReplaceAll(strings.ReplaceAll(f.name, " ", "-"), "/", "-"), findings)
		})
	}
}

func (f fault) node(t *testing.T) *Node {
	t.Helper()
	machine := f.machine
	if machine == "" {
		machine = "mlx5-roce-8rail"
	}
	n := nodeOf(t, machine)
	if f.damage != nil {
		f.damage(n)
	}
	return n
}

// TestEveryRuleSpeaks wants a fault for each rule, so that no rule is dead.
func TestEveryRuleSpeaks(t *testing.T) {
	t.Parallel()
	spoke := map[int]bool{}
	for _, f := range faults {
		n := f.node(t)
		for i, rule := range rules() {
			if len(rule(n, f.wishes)) > 0 {
				spoke[i] = true
			}
		}
	}
	for i := range rules() {
		if !spoke[i] {
			t.Errorf("no fault makes rule %d speak", i)
		}
	}
}

// TestFindingsCanBeActedOn holds what every finding must have.
func TestFindingsCanBeActedOn(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		for _, finding := range Run(f.node(t), f.wishes) {
			if finding.ID == "" || finding.Object == "" || finding.Seen == "" || finding.Why == "" {
				t.Errorf("%s: incomplete: %+v", f.name, finding)
			}
			if finding.Severity != Info && len(finding.Mend) == 0 {
				t.Errorf("%s: %s says nothing of how to mend it", f.name, finding.ID)
			}
			if text := fmt.Sprint(finding); strings.Contains(text, "%!") {
				t.Errorf("%s: %s is badly formatted: %s", f.name, finding.ID, text)
			}
		}
	}
}

func compareGolden(t *testing.T, name string, findings []Finding) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %s: %s\nseen: %s\nwhy: %s\n%s\n\n", f.Severity, f.ID, f.Object, f.Seen, f.Why, strings.Join(f.Mend, "\n"))
	}
	golden.Equal(t, file, b.String())
}

func TestWorst(t *testing.T) {
	t.Parallel()
	tests := map[Severity][]Finding{
		"":      nil,
		Info:    {{Severity: Info}},
		Warning: {{Severity: Info}, {Severity: Warning}},
		Error:   {{Severity: Warning}, {Severity: Error}, {Severity: Info}},
	}
	for _, want := range slices.Sorted(maps.Keys(tests)) {
		if got := Worst(tests[want]); got != want {
			t.Errorf("Worst(%v) = %q, want %q", tests[want], got, want)
		}
	}
}
