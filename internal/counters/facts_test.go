package counters

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/inventory"
)

func TestFacts(t *testing.T) {
	t.Parallel()
	rdma := func(name string, index *uint32, ports ...inventory.Port) *inventory.RDMA {
		return &inventory.RDMA{
			Name: name, Index: index, Protocol: "roce", NodeGUID: "0c42:a103:0065:1234", SysImageGUID: "0c42:a103:0065:1234",
			Firmware: "28.39.1002", BoardID: "MT_0000000838", Ports: ports,
		}
	}
	s := &inventory.Snapshot{
		System: inventory.System{NetNSMode: "exclusive", CopyOnFork: new(true)},
		Devices: []inventory.Device{
			{
				ID: "0000:17:00.0", Kind: inventory.PF, Rail: new(0),
				PCI: &inventory.PCI{Address: "0000:17:00.0", Driver: "mlx5_core", NUMANode: new(0)},
				RDMA: rdma("mlx5_0", new(uint32(0)),
					inventory.Port{
						Number: 1, LinkLayer: inventory.Ethernet, Netdev: "eth2", State: "ACTIVE", PhysState: "LINK_UP",
						Gigabits: 200, MaxGigabits: 400, Lanes: 4, MTU: 9000, MaxMTU: 9978, RDMAMTU: 4096, GIDTableLen: 256,
						GIDs: make([]inventory.GID, 4),
					},
					inventory.Port{Number: 2, LinkLayer: inventory.Ethernet, Netdev: "eth2_0", Representor: true, Gigabits: 200, State: "ACTIVE"}),
			},
			{
				ID: "0000:17:00.2", Kind: inventory.VF, Parent: "0000:17:00.0", VF: new(0),
				PCI:  &inventory.PCI{Address: "0000:17:00.2", Driver: "mlx5_core"},
				RDMA: rdma("mlx5_2", nil, inventory.Port{Number: 1, State: "ACTIVE_DEFER"}),
			},
			{ID: "0000:31:00.0", Kind: inventory.PF},
			{ID: "rxe0", Kind: inventory.Virtual, RDMA: &inventory.RDMA{Name: "rxe0", Index: new(uint32(3))}},
		},
	}
	want := []string{
		`rdma_system_netns_mode{mode="exclusive"} 1`,
		`rdma_system_copy_on_fork{} 1`,
		`rdma_device_info{device="mlx5_0",node_guid="0c42:a103:0065:1234",sys_image_guid="0c42:a103:0065:1234",fw_version="28.39.1002",driver="mlx5_core",board_id="MT_0000000838",pci_address="0000:17:00.0",numa_node="0",node_type="ca",protocol="roce"} 1`,
		`rdma_port_info{device="mlx5_0",port="1",netdev="eth2",link_layer="Ethernet",function="pf",rail="0"} 1`,
		`rdma_port_speed_bytes_per_second{device="mlx5_0",port="1",netdev="eth2"} 2.5e+10`,
		`rdma_vport_speed_mbps{device="mlx5_0",port="1",netdev="eth2"} 200000`,
		`rdma_port_max_speed_bytes_per_second{device="mlx5_0",port="1",netdev="eth2"} 5e+10`,
		`rdma_port_width_lanes{device="mlx5_0",port="1",netdev="eth2"} 4`,
		`rdma_port_mtu_bytes{device="mlx5_0",port="1",netdev="eth2",kind="active"} 9000`,
		`rdma_port_mtu_bytes{device="mlx5_0",port="1",netdev="eth2",kind="max"} 9978`,
		`rdma_port_mtu_bytes{device="mlx5_0",port="1",netdev="eth2",kind="rdma"} 4096`,
		`rdma_port_gids{device="mlx5_0",port="1",netdev="eth2"} 4`,
		`rdma_port_info{device="mlx5_0",port="2",netdev="eth2_0",link_layer="Ethernet",function="rep",rail="0"} 1`,
		`rdma_device_info{device="mlx5_2",node_guid="0c42:a103:0065:1234",sys_image_guid="0c42:a103:0065:1234",fw_version="28.39.1002",driver="mlx5_core",board_id="MT_0000000838",pci_address="0000:17:00.2",node_type="ca",protocol="roce"} 1`,
		`rdma_port_info{device="mlx5_2",port="1",pf_device="mlx5_0",function="vf",vf_index="0",rail="0"} 1`,
		`rdma_port_state{device="mlx5_2",port="1",state="ACTIVE"} 0`,
		`rdma_port_state{device="mlx5_2",port="1",state="INIT"} 0`,
		`rdma_port_state{device="mlx5_2",port="1",state="ARMED"} 0`,
		`rdma_port_state{device="mlx5_2",port="1",state="DOWN"} 0`,
		`rdma_port_state{device="mlx5_2",port="1",state="ACTIVE_DEFER"} 1`,
		`rdma_device_info{device="rxe0",driver="rxe"} 1`,
	}
	if diff := cmp.Diff(want, lines(Facts(s, nil))); diff != "" {
		t.Error(diff)
	}
}

// TestFactsAndReader wants no series from both.
func TestFactsAndReader(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.equip()
	samples := r.read(NewReader(&r.device), r.access())
	s := &inventory.Snapshot{System: inventory.System{NetNSMode: "exclusive"}, Devices: []inventory.Device{r.device}}
	expectDistinct(t, lines(Facts(s, samples)))
}
