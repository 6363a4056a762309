package inventory

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestJoinFacts says in words of its own what matters about the machines, so
// that a wrong golden file cannot slip in.
func TestJoinFacts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		machine string
		device  string // ID, RDMA device or netdev
		get     func(*Device) any
		want    any
	}{
		{"VF in a pod: its function", "mlx5-roce-vfs", "mlx5_3", id, "0000:af:00.3"},
		{"VF in a pod: kind", "mlx5-roce-vfs", "mlx5_3", kind, VF},
		{"VF in a pod: PF", "mlx5-roce-vfs", "mlx5_3", parent, "0000:af:00.0"},
		{"VF in a pod: number", "mlx5-roce-vfs", "mlx5_3", vfNumber, 1},
		{"VF in a pod: rail of its PF", "mlx5-roce-vfs", "mlx5_3", rail, 0},
		{"VF in a pod: namespace", "mlx5-roce-vfs", "mlx5_3", rdmaNetNS, "/var/run/netns/cni-5b2f8c1e-7d0a-4f5b-9f0e-2c8f1f6f7b11"},
		{"VF in a pod: namespace of its netdev", "mlx5-roce-vfs", "mlx5_3", netdevNetNS, "/var/run/netns/cni-5b2f8c1e-7d0a-4f5b-9f0e-2c8f1f6f7b11"},
		{"VF in a pod: netdev", "mlx5-roce-vfs", "mlx5_3", netdevs, []string{"net1"}},
		{"VF in a pod: port's netdev", "mlx5-roce-vfs", "mlx5_3", portNetdevs, []string{"net1"}},
		{"VF in a pod: character devices stay", "mlx5-roce-vfs", "mlx5_3", charDevices, []string{"uverbs3", "umad3"}},
		{"VF on the host: no namespace", "mlx5-roce-vfs", "mlx5_2", rdmaNetNS, ""},
		{"VF on the host: no namespace of its netdev", "mlx5-roce-vfs", "mlx5_2", netdevNetNS, ""},
		{"VF of the second port: PF", "mlx5-roce-vfs", "mlx5_9", parent, "0000:af:00.1"},
		{"VF of the second port: number", "mlx5-roce-vfs", "mlx5_9", vfNumber, 3},
		{"VF of the second port: rail", "mlx5-roce-vfs", "mlx5_9", rail, 1},
		{"VF of vfio: number", "mlx5-roce-vfs", "0000:af:01.4", vfNumber, 2},
		{"VF of vfio: no RDMA", "mlx5-roce-vfs", "0000:af:01.4", rdmaName, ""},
		{"VF of vfio: driver", "mlx5-roce-vfs", "0000:af:01.4", driver, "vfio-pci"},
		{"PF: VFs", "mlx5-roce-vfs", "mlx5_0", sriov, SRIOV{TotalVFs: 8, NumVFs: 4, AutoprobeVFs: true}},

		{"bond: port's netdev", "mlx5-bond", "mlx5_bond_0", portNetdevs, []string{"bond0"}},
		{"bond: netdevs", "mlx5-bond", "mlx5_bond_0", netdevs, []string{"enp152s0f0np0", "bond0"}},
		{"bond: its speed", "mlx5-bond", "mlx5_bond_0", portGigabits, []float64{200}},
		{"bond: first member", "mlx5-bond", "0000:98:00.0", bondOf, bothOfBond0()},
		{"bond: second member", "mlx5-bond", "0000:98:00.1", bondOf, bothOfBond0()},
		{"bond: second member has no RDMA device", "mlx5-bond", "0000:98:00.1", rdmaName, ""},
		{"bond: the RDMA device of the first stands for the second", "mlx5-bond", "0000:98:00.1", carriedBy, "mlx5_bond_0"},
		{"bond: the first stands for itself", "mlx5-bond", "0000:98:00.0", carriedBy, ""},
		{"bond: second member has the rail of the first", "mlx5-bond", "0000:98:00.1", rail, 0},

		{"bluefield: ports and their netdevs", "bluefield", "mlx5_0", portNetdevs, []string{"pf0hpf", "pf0vf0", "en3f0pf0sf88", "en3f0pf0sf89", "", "p0"}},
		{"bluefield: representors", "bluefield", "mlx5_0", representors, []int{1, 2, 3, 4, 5}},
		{"bluefield: representors are no netdevs of the PF", "bluefield", "mlx5_0", netdevs, []string{"p0"}},
		{"bluefield: representors of the second port", "bluefield", "mlx5_1", representors, []int{1, 2}},
		{"subfunction: ID", "bluefield", "mlx5_4", id, "mlx5_core.sf.4"},
		{"subfunction: kind", "bluefield", "mlx5_4", kind, SF},
		{"subfunction: number", "bluefield", "mlx5_4", sfNumber, 88},
		{"subfunction: parent", "bluefield", "mlx5_4", parent, "0000:03:00.0"},
		{"subfunction: rail of its PF", "bluefield", "mlx5_4", rail, 0},
		{"subfunction: netdev", "bluefield", "mlx5_4", portNetdevs, []string{"enp3s0f0s88"}},
		{"subfunction: no representor", "bluefield", "mlx5_4", representors, []int(nil)},
		{"second subfunction: number", "bluefield", "mlx5_5", sfNumber, 89},

		{"two ports on one function: netdevs by dev_port", "mlx5-dual-port", "mlx4_0", portNetdevs, []string{"ibp130s0", "enp130s0d1"}},
		{"two ports on one function: link layers", "mlx5-dual-port", "mlx4_0", linkLayers, []string{InfiniBand, Ethernet}},
		{"two ports on one function: RoCE MTU on Ethernet only", "mlx5-dual-port", "mlx4_0", rdmaMTUs, []int{0, 4096}},
		{"two ports on one function: character devices", "mlx5-dual-port", "mlx4_0", charDevices, []string{"uverbs2", "issm2", "umad2", "umad3"}},
		{"two ports on two functions", "mlx5-dual-port", "mlx5_1", id, "0000:3b:00.1"},
		{"a port that is down has no speed", "mlx5-dual-port", "mlx5_1", portGigabits, []float64{0}},

		{"efa: no netdev", "efa", "rdmap16s27", netdevs, []string(nil)},
		{"efa: no port netdev", "efa", "rdmap16s27", portNetdevs, []string{""}},
		{"efa: link layer", "efa", "rdmap16s27", linkLayers, []string{"Unknown"}},
		{"efa: GIDs are no addresses", "efa", "rdmap16s27", addresses, []string{"invalid IP"}},
		{"efa: nearest GPUs", "efa", "rdmap16s27", nearest, []Affinity{{"0000:10:1c.0", PHB}, {"0000:10:1d.0", PHB}}},
		{"efa: rail", "efa", "rdmap160s27", rail, 3},

		{"iWARP: its netdev is another function's", "erdma", "erdma_0", portNetdevs, []string{"eth1"}},
		{"iWARP: no RoCE MTU", "erdma", "erdma_0", rdmaMTUs, []int{0}},
		{"iWARP: the GID is a MAC", "erdma", "erdma_0", addresses, []string{"invalid IP"}},

		{"GPU behind the same switch", "mlx5-roce-8rail", "mlx5_0", nearest, []Affinity{{"0000:19:00.0", PIX}}},
		{"GPU behind the same switch, last rail", "mlx5-roce-8rail", "mlx5_7", nearest, []Affinity{{"0000:db:00.0", PIX}}},
		{"switch", "mlx5-roce-8rail", "mlx5_0", pcieSwitch, "0000:16:00.0"},
		{"character devices by ibdev", "mlx5-roce-8rail", "mlx5_5", charDevices, []string{"uverbs5", "umad5"}},
		{"last rail", "mlx5-roce-8rail", "enp220s0np0", rail, 7},
		{"GIDs of RoCE are addresses", "mlx5-roce-8rail", "mlx5_0", addresses, []string{
			"fe80::5aa2:e1ff:fe2a:9b8", "fe80::5aa2:e1ff:fe2a:9b8", "172.16.11.2", "172.16.11.2",
		}},

		{"IPoIB: netdev by function and dev_port", "mlx5-ib-ipoib", "mlx5_1", portNetdevs, []string{"ibp84s0"}},
		{"IPoIB: GIDs of InfiniBand are no addresses", "mlx5-ib-ipoib", "mlx5_0", addresses, []string{"invalid IP"}},
		{"IPoIB: GUID of the port", "mlx5-ib-ipoib", "mlx5_0", portGUIDs, []string{"a088:c203:00a1:523e"}},
		{"no GUID of a RoCE port", "mlx5-roce-8rail", "mlx5_0", portGUIDs, []string{""}},
		{"Soft-RoCE: kind", "rxe", "rxe0", kind, Virtual},
		{"Soft-RoCE: netdev", "rxe", "rxe1", portNetdevs, []string{"veth0"}},
		{"Soft-RoCE: no rail", "rxe", "rxe0", rail, nil},
		{"Soft-RoCE by its netdev", "rxe", "eth0", id, "rxe0"},
		{"no module: the card is there", "mlx5-no-module", "enp23s0np0", id, "0000:17:00.0"},
		{"no module: without RDMA", "mlx5-no-module", "enp23s0np0", rdmaName, ""},
		{"sysfs alone: netdev", "bnxt-re", "bnxt_re1", portNetdevs, []string{"enp194s0f1np1"}},
		{"sysfs alone: physical state as netlink has it", "bnxt-re", "bnxt_re1", physStates, []string{"DISABLED"}},
	}
	snapshots := map[string]*Snapshot{}
	for _, name := range machines(t) {
		snapshots[name] = Join(machineFacts(t, name), Options{})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, ok := snapshots[tt.machine].Device(tt.device)
			if !ok {
				t.Fatalf("%s has no device %s", tt.machine, tt.device)
			}
			if diff := cmp.Diff(tt.want, tt.get(d)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", tt.machine, tt.device, diff)
			}
		})
	}
}

func bothOfBond0() Bond {
	return Bond{Name: "bond0", Mode: "802.3ad", Members: []string{"enp152s0f0np0", "enp152s0f1np1"}}
}

func id(d *Device) any         { return d.ID }
func kind(d *Device) any       { return d.Kind }
func parent(d *Device) any     { return d.Parent }
func vfNumber(d *Device) any   { return value(d.VF) }
func sfNumber(d *Device) any   { return value(d.SF) }
func rail(d *Device) any       { return value(d.Rail) }
func driver(d *Device) any     { return d.PCI.Driver }
func pcieSwitch(d *Device) any { return d.PCI.Switch }
func sriov(d *Device) any      { return *d.SRIOV }
func bondOf(d *Device) any     { return *d.Bond }
func carriedBy(d *Device) any  { return d.CarriedBy }

// value returns what p points to, or nil.
func value(p *int) any {
	if p == nil {
		return nil
	}
	return *p
}

func rdmaName(d *Device) any {
	if d.RDMA == nil {
		return ""
	}
	return d.RDMA.Name
}

func rdmaNetNS(d *Device) any   { return pathOf(d.RDMA.NetNS) }
func netdevNetNS(d *Device) any { return pathOf(d.Netdevs[0].NetNS) }

func pathOf(n *NetNS) any {
	if n == nil {
		return ""
	}
	return n.Path
}

func netdevs(d *Device) any {
	return each(d.Netdevs, func(n Netdev) string { return n.Name })
}

func charDevices(d *Device) any {
	return each(d.RDMA.CharDevices, func(c CharDevice) string { return c.Name })
}

func portNetdevs(d *Device) any {
	return each(d.RDMA.Ports, func(p Port) string { return p.Netdev })
}

func portGUIDs(d *Device) any {
	return each(d.RDMA.Ports, func(p Port) string { return p.GUID })
}

func linkLayers(d *Device) any {
	return each(d.RDMA.Ports, func(p Port) string { return p.LinkLayer })
}

func physStates(d *Device) any {
	return each(d.RDMA.Ports, func(p Port) string { return p.PhysState })
}

func portGigabits(d *Device) any {
	return each(d.RDMA.Ports, func(p Port) float64 { return p.Gigabits })
}

func rdmaMTUs(d *Device) any {
	return each(d.RDMA.Ports, func(p Port) int { return p.RDMAMTU })
}

func addresses(d *Device) any {
	return each(d.RDMA.Ports[0].GIDs, func(g GID) string { return g.Address.String() })
}

// representors are the numbers of the ports that stand for other functions.
func representors(d *Device) any {
	var numbers []int
	for _, p := range d.RDMA.Ports {
		if p.Representor {
			numbers = append(numbers, p.Number)
		}
	}
	return numbers
}

// nearest are the GPUs than which none is nearer.
func nearest(d *Device) any {
	return slices.DeleteFunc(slices.Clone(d.GPUs), func(a Affinity) bool { return a.Distance != d.GPUs[0].Distance })
}

func each[T, V any](list []T, of func(T) V) []V {
	var values []V
	for _, v := range list {
		values = append(values, of(v))
	}
	return values
}

func TestJoinLeavesOutWhatIsNotRDMA(t *testing.T) {
	t.Parallel()
	for machine, want := range map[string]int{"no-rdma": 0, "mlx5-roce-8rail": 8, "efa": 4, "erdma": 1} {
		if s := Join(machineFacts(t, machine), Options{}); len(s.Devices) != want {
			t.Errorf("%s has %d devices, want %d", machine, len(s.Devices), want)
		}
	}
	s := Join(machineFacts(t, "mlx5-roce-8rail"), Options{})
	if len(s.GPUs) != 8 {
		t.Errorf("%d GPUs, want 8 without the display of the management controller and the NVSwitches: %v", len(s.GPUs), s.GPUs)
	}
}

func TestRails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		machine  string
		rails    []string
		want     map[string]int // by RDMA device, or ID without one
		problems []string       // words of each
	}{
		{
			name: "by PCI order", machine: "mlx5-roce-8rail",
			want: map[string]int{"mlx5_0": 0, "mlx5_1": 1, "mlx5_2": 2, "mlx5_3": 3, "mlx5_4": 4, "mlx5_5": 5, "mlx5_6": 6, "mlx5_7": 7},
		},
		{
			name: "by PCI order, of the most frequent board", machine: "mlx5-dual-port",
			want: map[string]int{"mlx5_0": 0, "mlx5_1": 1},
		},
		{
			name: "by netdev, RDMA device and address", machine: "mlx5-dual-port",
			rails: []string{"enp130s0d1", "mlx5_1", "0000:3b:00.0"},
			want:  map[string]int{"mlx4_0": 0, "mlx5_1": 1, "mlx5_0": 2},
		},
		{
			name: "some only", machine: "mlx5-dual-port", rails: []string{"mlx5_1"},
			want: map[string]int{"mlx5_1": 0},
		},
		{
			name: "a name that is none keeps its number", machine: "mlx5-dual-port",
			rails:    []string{"mlx5_0", "eth7", "mlx5_1"},
			want:     map[string]int{"mlx5_0": 0, "mlx5_1": 2},
			problems: []string{`rail 1: there is no netdev, RDMA device or PCI address "eth7"`},
		},
		{
			name: "one device twice", machine: "mlx5-dual-port",
			rails:    []string{"mlx5_0", "enp59s0f0np0"},
			want:     map[string]int{"mlx5_0": 0},
			problems: []string{`rail 1: "enp59s0f0np0" is on 0000:3b:00.0, which is rail 0 already`},
		},
		{
			name: "VFs have that of their PF", machine: "mlx5-roce-vfs", rails: []string{"mlx5_1", "mlx5_0"},
			want: map[string]int{
				"mlx5_0": 1, "mlx5_2": 1, "mlx5_3": 1, "mlx5_4": 1, "mlx5_5": 1,
				"mlx5_1": 0, "mlx5_6": 0, "mlx5_7": 0, "0000:af:01.4": 0, "mlx5_9": 0,
			},
		},
		{
			name: "members have that of their bond", machine: "mlx5-bond", rails: []string{"bond0"},
			want: map[string]int{"mlx5_bond_0": 0, "0000:98:00.1": 0},
		},
		{
			name: "a bond by its second member", machine: "mlx5-bond", rails: []string{"enp152s0f1np1"},
			want: map[string]int{"mlx5_bond_0": 0, "0000:98:00.1": 0},
		},
		{
			name: "software RDMA by name", machine: "rxe", rails: []string{"veth0"},
			want: map[string]int{"rxe1": 0},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := Join(machineFacts(t, tt.machine), Options{Rails: tt.rails})
			got := map[string]int{}
			for i := range s.Devices {
				if d := &s.Devices[i]; d.Rail != nil {
					got[d.RDMAName()] = *d.Rail
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rails (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.problems, s.Problems, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSnapshotDevice(t *testing.T) {
	t.Parallel()
	s := Join(machineFacts(t, "mlx5-roce-vfs"), Options{})
	for name, want := range map[string]string{
		"0000:af:00.1": "0000:af:00.1", "mlx5_1": "0000:af:00.1", "enp175s0f1np1": "0000:af:00.1", "mlx5_3": "0000:af:00.3",
		"net1": "", // in a pod, where the name means nothing here
		"":     "",
	} {
		d, ok := s.Device(name)
		if ok != (want != "") || ok && d.ID != want {
			t.Errorf("device %q is %v, want %q", name, d, want)
		}
	}
}

// RDMAName is the name of the device's RDMA device, or its ID without one.
func (d *Device) RDMAName() string {
	if d.RDMA == nil {
		return d.ID
	}
	return d.RDMA.Name
}
