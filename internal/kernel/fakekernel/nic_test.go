package fakekernel_test

import (
	"errors"
	"io/fs"
	"math"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/devlink"
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rtnl"
)

func nic() *fakekernel.NIC {
	return &fakekernel.NIC{
		Driver:    &ethtool.DriverInfo{Driver: "mlx5_core", Version: "6.12.48", Firmware: "28.39.1002 (MT_0000000838)", BusInfo: "0000:17:00.0"},
		StatNames: []string{"rx_packets", "rx_prio3_pause_duration_of_32_bytes", "tx_vport_rdma_unicast_bytes"}, // the second is cut
		Stats:     ramp(1),
		Pause:     &ethtool.Pause{Autoneg: true, Tx: true},
		PauseStats: func() ethtool.PauseStats {
			return ethtool.PauseStats{TxFrames: new(uint64(math.MaxUint64)), TxStormEvents: new(uint64(3))}
		},
		FEC: &ethtool.FEC{Auto: true, Active: "rs", Modes: []string{"off", "rs"}},
		FECStats: func() ethtool.FECStats {
			return ethtool.FECStats{CorrectedBlocks: new(uint64(0)), CorrectedBits: new(uint64(9))}
		},
		Standard: []ethtool.StandardStat{
			{Group: "eth-phy", Name: "SymbolErrorDuringCarrier"},
			{Group: "eth-mac", Name: "FramesTransmittedOK"},
			{Group: "eth-mac", Name: "FrameTooLongErrors"},
			{Group: "rmon", Name: "etherStatsJabbers"},
		},
		StandardValues: ramp(2),
		PFC: func() rtnl.PFC {
			return rtnl.PFC{Enabled: 1 << 3, Requests: [8]uint64{3: math.MaxUint64, 7: 7}, Indications: [8]uint64{0: 1, 3: 5}}
		},
		VFs: []rtnl.VF{
			{
				Number: 0, Address: "02:00:00:00:00:01", VLANID: 100, VLANQoS: 3, VLANProto: "802.1ad", MinTxMegabits: 1000, MaxTxMegabits: 25000,
				SpoofCheck: new(true), Trust: new(false), LinkState: "enable", NodeGUID: "0c42:a103:0065:1234", PortGUID: "0c42:a103:0065:1235",
			},
			{Number: 5, Address: "00:00:00:00:00:00", RSSQuery: new(true)},
		},
		VFStats: func(number int) rtnl.VFStats {
			n := uint64(number) << 32
			return rtnl.VFStats{RxPackets: n + 1, TxPackets: n + 2, RxBytes: n + 3, TxBytes: n + 4, Broadcast: n + 5, Multicast: n + 6, RxDropped: n + 7, TxDropped: n + 8}
		},
	}
}

// nicKernel has four links, of which one has a NIC.
func nicKernel() *fakekernel.Kernel {
	f := facts()
	f.NICs = map[int]*fakekernel.NIC{2: nic()}
	return fakekernel.New(f)
}

func ethtoolOf(t *testing.T, k *fakekernel.Kernel) *ethtool.Client {
	t.Helper()
	c, err := k.Ethtool()
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, c)
	return c
}

func TestNIC(t *testing.T) {
	t.Parallel()
	k, want := nicKernel(), nic()
	c := ethtoolOf(t, k)
	pause, err := c.Pause(2)
	check(t, "pause", *want.Pause, pause, err)
	pauseStats, err := c.PauseStats(2)
	check(t, "pause statistics", want.PauseStats(), pauseStats, err)
	fec, err := c.FEC(2)
	check(t, "FEC", *want.FEC, fec, err)
	fecStats, err := c.FECStats(2)
	check(t, "FEC statistics", want.FECStats(), fecStats, err)
	for i := range want.Standard {
		want.Standard[i].Value = 2 + uint64(i)<<56
	}
	standard, err := c.StandardStats(2)
	check(t, "standard statistics", want.Standard, standard, err)
	if got := k.Asked(fakekernel.GetPauseStats); got != 1 {
		t.Errorf("asked for pause statistics %d times, want 1", got)
	}
	k.Refuse(fakekernel.GetFECStats, unix.EIO, 2)
	_, err = c.FECStats(2)
	expectErr(t, "FEC statistics", err, unix.EIO)
	if _, err = c.FEC(2); err != nil {
		t.Errorf("FEC, which is another request: %v", err)
	}
	k.ChangeNIC(2, func(n *fakekernel.NIC) { *n = fakekernel.NIC{Pause: &ethtool.Pause{}} })
	pauseStats, err = c.PauseStats(2)
	check(t, "pause without statistics", ethtool.PauseStats{}, pauseStats, err)
	_, err = c.FEC(2)
	expectErr(t, "FEC that is gone", err, ethtool.ErrNotSupported)
	_, err = c.StandardStats(7)
	expectErr(t, "standard statistics of a link without", err, ethtool.ErrNotSupported)
	_, err = c.Pause(3)
	expectErr(t, "pause of no link", err, fs.ErrNotExist)
}

func TestDriverStatistics(t *testing.T) {
	t.Parallel()
	k, want := nicKernel(), nic()
	c := ethtoolOf(t, k)
	info, err := c.DriverInfo("eth0")
	check(t, "driver", *want.Driver, info, err)
	s := ethtool.NewStatistics("enp23s0", nil) // an alternative name
	for range 2 {
		names, values, err := s.Read(c)
		check(t, "names", []string{"rx_packets", "rx_prio3_pause_duration_of_32_by", "tx_vport_rdma_unicast_bytes"}, names, err)
		check(t, "values", []uint64{1, 1 + 1<<56, 1 + 2<<56}, values, nil)
	}
	if got := k.Asked(fakekernel.GetStatNames); got != 1 {
		t.Errorf("asked for names %d times, want 1", got)
	}
	k.ChangeNIC(2, func(n *fakekernel.NIC) { n.StatNames, n.Stats = []string{"a"}, nil })
	names, values, err := s.Read(c) // notices that the number changed
	check(t, "names", []string{"a"}, names, err)
	check(t, "values that nothing says", []uint64{0}, values, nil)

	k.Refuse(fakekernel.GetStats, unix.EIO, 2)
	expectErr(t, "statistics", c.Stats("eth0", make([]uint64, 1)), unix.EIO)
	_, err = c.StatNames("lo")
	expectErr(t, "names of a link without", err, ethtool.ErrNotSupported)
	_, err = c.StatNames("eth9")
	expectErr(t, "names of no link", err, fs.ErrNotExist)
	_, err = c.DriverInfo("eth0.5")
	expectErr(t, "driver of a link without", err, ethtool.ErrNotSupported)
}

func TestVFs(t *testing.T) {
	t.Parallel()
	k, want := nicKernel(), nic()
	c := k.Links()
	closeAtEnd(t, c)
	for i := range want.VFs {
		want.VFs[i].Stats = new(want.VFStats(want.VFs[i].Number))
	}
	got, err := c.VFs(2)
	check(t, "VFs", want.VFs, got, err)
	got, err = c.VFs(1)
	check(t, "VFs of another link", nil, got, err)
	links, err := c.Links()
	if err != nil || len(links) != 4 || k.Asked(fakekernel.GetLink) != 1 || k.Asked(fakekernel.GetVFs) != 2 {
		t.Errorf("%d links, %d requests for links and %d for VFs: %v, want 4, 1, 2", len(links), k.Asked(fakekernel.GetLink), k.Asked(fakekernel.GetVFs), err)
	}
	k.ChangeNIC(2, func(n *fakekernel.NIC) { // more than fit with statistics
		n.VFs = nil
		for i := range 400 {
			n.VFs = append(n.VFs, rtnl.VF{Number: i, Address: "02:00:00:00:00:01"})
		}
	})
	got, err = c.VFs(2)
	if err != nil || len(got) != 400 || got[399].Number != 399 || got[0].Stats != nil {
		t.Errorf("%d VFs: %v, want 400 without statistics", len(got), err)
	}
}

func TestPFC(t *testing.T) {
	t.Parallel()
	k := nicKernel()
	c := k.Links()
	closeAtEnd(t, c)
	got, err := c.PFC("eth0")
	check(t, "PFC", nic().PFC(), got, err)
	_, err = c.PFC("lo")
	expectErr(t, "PFC of a link without", err, rtnl.ErrNotSupported)
	_, err = c.PFC("eth9")
	expectErr(t, "PFC of no link", err, fs.ErrNotExist)
	k.Refuse(fakekernel.GetPFC, unix.EIO, 2)
	_, err = c.PFC("eth0")
	expectErr(t, "PFC", err, unix.EIO)
	l, err := c.LinkByName("enp23s0")
	check(t, "link by name", 2, l.Index, err)
	_, err = c.LinkByName("eth9")
	expectErr(t, "no such link", err, fs.ErrNotExist)
}

func TestDevlink(t *testing.T) {
	t.Parallel()
	fw := devlink.Reporter{Bus: "pci", Device: "0000:17:00.0", Name: "fw"}
	vnic := devlink.Reporter{Bus: "pci", Device: "0000:17:00.0", Name: "vnic"}
	port := devlink.Reporter{Bus: "pci", Device: "0000:17:00.0", Port: new(uint32(0)), Name: "vnic"}
	sick := devlink.Health{Reporter: fw, State: "error", Errors: math.MaxUint64, Recoveries: 2, Dumped: time.Unix(1_700_000_000, 5).UTC()}
	f := facts()
	f.Devlink = []fakekernel.Reporter{
		{Reporter: fw, Health: func() devlink.Health { return sick }},
		{Reporter: vnic, Names: []string{"total_error_queues", "cq_overrun"}, Values: ramp(4)},
		{Reporter: port, Names: []string{"quota_exceeded_command"}},
	}
	k := fakekernel.New(f)
	c, err := k.Devlink()
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, c)
	got, err := c.HealthReporters("pci", "0000:17:00.0")
	check(t, "health", []devlink.Health{sick, {Reporter: vnic, State: "healthy"}, {Reporter: port, State: "healthy"}}, got, err)
	got, err = c.HealthReporters("pci", "0000:18:00.0")
	check(t, "health of a device without devlink", nil, got, err)
	numbers, err := c.Diagnose(vnic)
	check(t, "diagnosis", map[string]uint64{"total_error_queues": 4, "cq_overrun": 4 + 1<<56}, numbers, err)
	numbers, err = c.Diagnose(port)
	check(t, "diagnosis of a port", map[string]uint64{"quota_exceeded_command": 0}, numbers, err)
	_, err = c.Diagnose(fw)
	expectErr(t, "reporter without diagnosis", err, devlink.ErrNotSupported)
	_, err = c.Diagnose(devlink.Reporter{Bus: "pci", Device: "0000:17:00.0", Name: "tx"})
	expectErr(t, "no such reporter", err, devlink.ErrNotSupported)
	_, err = c.Diagnose(devlink.Reporter{Bus: "pci", Device: "0000:18:00.0", Name: "vnic"})
	expectErr(t, "no such device", err, fs.ErrNotExist)
	k.Refuse(fakekernel.DiagnoseHealth, unix.EIO, 1)
	_, err = c.Diagnose(vnic)
	expectErr(t, "diagnosis", err, unix.EIO)
	if _, err := c.Diagnose(port); err != nil {
		t.Errorf("diagnosis of another: %v", err)
	}
	if _, err := fakekernel.New(facts()).Devlink(); !errors.Is(err, devlink.ErrNotSupported) {
		t.Errorf("kernel without devlink: %v, want %v", err, devlink.ErrNotSupported)
	}
}
