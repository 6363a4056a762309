package inventory

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// TestJoinOddFacts changes the facts of machines into what no machine in the
// archive shows.
func TestJoinOddFacts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		machine string
		change  func(f *Facts)
		device  string
		get     func(*Device) any
		want    any
	}{
		{
			name: "a bond with one active member is as fast as that", machine: "mlx5-bond", change: activeBackup,
			device: "mlx5_bond_0", get: maxGigabits, want: []float64{100},
		},
		{
			name: "bond without RoCE LAG: each port has its own netdev", machine: "mlx5-bond", change: withoutLAG,
			device: "mlx5_1", get: portNetdevs, want: []string{"enp152s0f1np1"},
		},
		{
			name: "bond without RoCE LAG: no RDMA device stands for another function", machine: "mlx5-bond", change: withoutLAG,
			device: "mlx5_1", get: carriedBy, want: "",
		},
		{
			name: "a pod's bond of the same name", machine: "mlx5-bond", change: func(f *Facts) {
				moved := f.IB[0]
				moved.Name, moved.DevicePath = "mlx5_1", f.PCI[1].Path
				f.Netlink.Elsewhere = []Namespace{{
					ID: netns.ID{Ino: 7}, IB: []sysfs.IBDevice{moved}, Links: []rtnl.Link{{Index: 2, Name: "bond0", Kind: "bond"}},
				}}
			},
			device: "mlx5_1", get: func(d *Device) any { return d.RDMA.Ports[0].MaxMTU }, want: 0,
		},
		{
			name: "seen here and elsewhere: here counts", machine: "mlx5-roce-vfs", change: func(f *Facts) {
				f.IB = append(f.IB, f.Netlink.Elsewhere[0].IB...)
			},
			device: "mlx5_3", get: rdmaNetNS, want: "",
		},
		{
			name: "VF whose PF has just gone", machine: "mlx5-roce-vfs", change: func(f *Facts) {
				f.PCI = slices.DeleteFunc(f.PCI, func(d sysfs.PCIDevice) bool { return d.Address == "0000:af:00.0" })
			},
			device: "mlx5_2", get: parent, want: "",
		},
		{
			name: "VF whose PF has just gone: kind", machine: "mlx5-roce-vfs", change: func(f *Facts) {
				f.PCI = slices.DeleteFunc(f.PCI, func(d sysfs.PCIDevice) bool { return d.Address == "0000:af:00.0" })
			},
			device: "mlx5_2", get: kind, want: VF,
		},
		{
			name: "device link has just gone", machine: "mlx5-roce-vfs", change: func(f *Facts) {
				for i := range f.IB {
					f.IB[i].DevicePath = ""
				}
			},
			device: "mlx5_2", get: id, want: "0000:af:00.2",
		},
		{
			name: "renamed while it was read", machine: "mlx5-roce-8rail", change: func(f *Facts) {
				f.Netlink.RDMA[0].Name = "rocep26s0"
			},
			device: "0000:1a:00.0", get: rdmaName, want: "mlx5_0",
		},
		{
			name: "first GID is that of a macvlan, and netlink says nothing", machine: "mlx5-dual-port", change: func(f *Facts) {
				f.Netlink.RDMA = nil
				f.Netlink.Links = append(f.Netlink.Links, rtnl.Link{Index: 99, Name: "macvlan0", Kind: "macvlan"})
				for i := range f.IB {
					f.IB[i].Ports[0].GIDs = []sysfs.GID{{Index: 5, GID: "::1", Netdev: "macvlan0"}}
				}
			},
			device: "mlx5_0", get: portNetdevs, want: []string{"enp59s0f0np0"},
		},
		{
			name: "RDMA device that netlink alone shows", machine: "mlx5-dual-port", change: func(f *Facts) { f.IB = nil },
			device: "0000:3b:00.1", get: rdmaName, want: "mlx5_1",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := machineFacts(t, tt.machine)
			tt.change(f)
			s := Join(f, Options{})
			checkSnapshot(t, s)
			d, ok := s.Device(tt.device)
			if !ok {
				t.Fatalf("no device %s", tt.device)
			}
			if diff := cmp.Diff(tt.want, tt.get(d)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.device, diff)
			}
		})
	}
}

// withoutLAG gives the second member of bond0 an RDMA device of its own, whose
// default GID names the bond too.
func withoutLAG(f *Facts) {
	second := f.IB[0]
	second.Name, second.Path, second.DevicePath = "mlx5_1", "", f.PCI[1].Path
	f.IB = append(f.IB, second)
	for _, l := range f.Netlink.Links {
		if l.Name == "enp152s0f1np1" {
			f.Netlink.RDMA = append(f.Netlink.RDMA, rdmanl.Device{
				Index: 1, Name: "mlx5_1", Ports: []rdmanl.Port{{Number: 1, State: "ACTIVE", NetdevIndex: l.Index}},
			})
		}
	}
}

// TestJoinSysfsAlone joins machines without what netlink said of them. Less is
// known then, but nothing is at another place.
func TestJoinSysfsAlone(t *testing.T) {
	t.Parallel()
	for _, machine := range machines(t) {
		t.Run(machine, func(t *testing.T) {
			t.Parallel()
			r, err := NewArchiveReader(kerneltest.Tree(t, "testdata/machines/"+machine+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			with := Join(r.Read(nil, Changes{}), Options{})
			r.archive = &Netlink{}
			without := Join(r.Read(nil, Changes{}), Options{})
			for i := range with.Devices {
				w, g := &with.Devices[i], &without.Devices[i]
				if isElsewhere(w) {
					continue
				}
				if diff := cmp.Diff(places(t, w), places(t, g)); diff != "" {
					t.Errorf("(-with +without netlink):\n%s", diff)
				}
				for k := range portsOf(w) {
					if netdev := portsOf(g)[k].Netdev; netdev != "" && netdev != portsOf(w)[k].Netdev {
						t.Errorf("port %d of %s has %s, want %s", k+1, w.ID, netdev, portsOf(w)[k].Netdev)
					}
				}
			}
		})
	}
}

func portsOf(d *Device) []Port {
	if d.RDMA == nil {
		return nil
	}
	return d.RDMA.Ports
}

func isElsewhere(d *Device) bool { return d.RDMA != nil && d.RDMA.NetNS != nil }

// places is what says where everything is.
func places(t *testing.T, d *Device) map[string]any {
	t.Helper()
	return map[string]any{
		"id": d.ID, "kind": d.Kind, "parent": d.Parent, "netdevs": netdevs(d), "rail": rail(d), "RDMA": rdmaName(d), "bond": bondText(t, d),
	}
}

func bondText(t *testing.T, d *Device) string {
	t.Helper()
	text, err := json.Marshal(d.Bond)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// activeBackup makes the bond one of which one member is active at a time.
func activeBackup(f *Facts) {
	for i := range f.Netdevs {
		if f.Netdevs[i].BondMode != "" {
			f.Netdevs[i].BondMode = "active-backup"
		}
	}
	for i := range f.Netlink.Links {
		if f.Netlink.Links[i].BondMode != "" {
			f.Netlink.Links[i].BondMode = "active-backup"
		}
	}
}

func maxGigabits(d *Device) any {
	return each(d.RDMA.Ports, func(p Port) float64 { return p.MaxGigabits })
}
