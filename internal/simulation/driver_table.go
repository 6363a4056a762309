package simulation

import (
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/fakekernel"
)

// driver is what a driver makes of a card.
type driver struct {
	net, rdma  string // modules: of the PCI function, and of the RDMA device
	vendor     string
	device, vf string // PCI device of a PF and of a VF; no VFs where that is empty
	subsystem  string
	class      string
	board, hca string
	firmware   string
	nodeType   string // as sysfs has it
	link       string // link layer in sysfs; by that of the card where empty
	hasNetdev  bool
	hasPMA     bool
	binds      bool // whether it binds queue pairs to counters
	infiniBand bool // whether its ports can be InfiniBand too

	hardware   []row // of the port, by netlink and in ports/N/hw_counters
	whole      []row // of the device, in hw_counters
	statistics []row // of the netdev
	congestion congestion
}

// congestion names the counters of a driver that congestion makes grow; %d
// stands for the priority. What a driver does not count is empty.
type congestion struct {
	rxFrames, txFrames     string // of pause
	rxDuration, txDuration string // microseconds
	transitions            string
	marked                 string // packets that came marked
	markedOf               string // likewise of a priority
	sent                   string // notifications
	handled                string // likewise
	discards               []string
}

// drivers lists the drivers that a card can have.
var drivers = map[string]*driver{
	"mlx5": {
		net: "mlx5_core", rdma: "mlx5_ib", vendor: "0x15b3", device: "0x1021", vf: "0x101e", subsystem: "0x0041", class: "0x020000",
		board: "MT_0000000838", hca: "MT4129", firmware: "28.39.1002", nodeType: "1: CA",
		hasNetdev: true, hasPMA: true, binds: true, infiniBand: true,
		hardware: mlx5Hardware, statistics: mlx5Statistics,
		congestion: congestion{
			rxFrames: "rx_prio%d_pause", txFrames: "tx_prio%d_pause",
			rxDuration: "rx_prio%d_pause_duration", txDuration: "tx_prio%d_pause_duration",
			transitions: "rx_prio%d_pause_transition", marked: "np_ecn_marked_roce_packets", markedOf: "rx_prio%d_marked",
			sent: "np_cnp_sent", handled: "rp_cnp_handled", discards: []string{"rx_prio%d_discards", "rx_discards_phy"},
		},
	},
	"bnxt_re": {
		net: "bnxt_en", rdma: "bnxt_re", vendor: "0x14e4", device: "0x1760", vf: "0x1819", subsystem: "0x5425", class: "0x020000",
		board: "0x1760", hca: "0x1760", firmware: "230.2.41.0", nodeType: "1: CA", hasNetdev: true,
		hardware: bnxtHardware, statistics: bnxtStatistics,
		congestion: congestion{
			rxFrames: "rx_pfc_ena_frames_pri%d", txFrames: "tx_pfc_ena_frames_pri%d",
			rxDuration: "pfc_pri%d_rx_duration_us", txDuration: "pfc_pri%d_tx_duration_us",
			discards: []string{"rx_roce_discards"},
		},
	},
	"efa": {
		net: "efa", rdma: "efa", vendor: "0x1d0f", device: "0xefa1", subsystem: "0xefa1", class: "0x020000",
		nodeType: "7: unspecified", link: "Unknown",
		hardware: efaHardware, whole: efaDevice,
		congestion: congestion{discards: []string{"rx_drops"}},
	},
	"irdma": {
		net: "ice", rdma: "irdma", vendor: "0x8086", device: "0x1592", subsystem: "0x0002", class: "0x020000",
		firmware: "1.71", nodeType: "1: CA", hasNetdev: true,
		hardware: irdmaHardware,
		congestion: congestion{
			marked: "RxECNMrkd", sent: "cnpSent", handled: "cnpHandled", discards: []string{"ip4InDiscards"},
		},
	},
	"ionic": {
		net: "ionic", rdma: "ionic_rdma", vendor: "0x1dd8", device: "0x1002", subsystem: "0x5202", class: "0x020000",
		hca: "AMD Pensando RoCE HCA", firmware: "1.117.5-a-11", nodeType: "1: CA", hasNetdev: true, binds: true,
		hardware: ionicHardware, statistics: ionicStatistics,
		congestion: congestion{
			rxFrames: "frames_rx_pri_%d", txFrames: "frames_tx_pri_%d",
			rxDuration: "rx_pripause_%d_1us_count", txDuration: "tx_pripause_%d_1us_count",
			marked: "rx_rdma_ecn_pkts", sent: "tx_rdma_cnp_pkts", handled: "rx_rdma_cnp_pkts",
		},
	},
	"rxe": {
		rdma: "rdma_rxe", nodeType: "1: CA", hasNetdev: true,
		hardware: rxeHardware,
	},
}

// errnos are what a device can answer instead.
var errnos = map[string]unix.Errno{
	"EAGAIN": unix.EAGAIN, "EBUSY": unix.EBUSY, "EINVAL": unix.EINVAL, "EIO": unix.EIO, "ENODEV": unix.ENODEV,
	"ENOMEM": unix.ENOMEM, "EOPNOTSUPP": unix.EOPNOTSUPP, "EPERM": unix.EPERM, "EREMOTEIO": unix.EREMOTEIO, "ETIMEDOUT": unix.ETIMEDOUT,
}

// requests are the kinds of requests that a device can refuse or be slow to
// answer: by RDMA device or by link.
var requests = map[string]struct {
	rdma, link []fakekernel.Request
}{
	"statistics": {rdma: []fakekernel.Request{fakekernel.GetStatistics}},
	"resources":  {rdma: []fakekernel.Request{fakekernel.GetResources, fakekernel.GetContexts, fakekernel.GetQPs, fakekernel.GetMRs}},
	"port":       {rdma: []fakekernel.Request{fakekernel.GetPort}},
	"ethtool":    {link: []fakekernel.Request{fakekernel.GetStats}},
}
