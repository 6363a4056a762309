package simulation

import (
	"fmt"
	"slices"
)

// row is a counter of a driver.
type row struct {
	name      string // the kernel's; with a directory before it where it is a file of one
	bits      int    // 64 unless it is narrower
	saturates bool   // it stays at its largest value instead of beginning anew
	pf        bool   // VFs do not have it
	isOff     bool   // optional, and not switched on
	pauseOf   *int   // a driver has it of lossless priorities alone: this one
	value     func(*volumes) uint64
}

// counts are rows that only a scenario's counters and events make grow.
func counts(bits int, names ...string) []row {
	rows := make([]row, 0, len(names))
	for _, name := range names {
		rows = append(rows, row{name: name, bits: bits})
	}
	return rows
}

// ofPF returns rows that VFs do not have.
func ofPF(rows []row) []row {
	for i := range rows {
		rows[i].pf = true
	}
	return rows
}

func volume(name string, bits int, value func(*volumes) uint64) row {
	return row{name: name, bits: bits, value: value}
}

func rxBytes(v *volumes) uint64       { return v.own.rxBytes }
func txBytes(v *volumes) uint64       { return v.own.txBytes }
func rxPackets(v *volumes) uint64     { return v.own.rxPackets }
func txPackets(v *volumes) uint64     { return v.own.txPackets }
func rxWrites(v *volumes) uint64      { return v.own.rxWrites }
func rxReads(v *volumes) uint64       { return v.own.rxReads }
func rxAtomics(v *volumes) uint64     { return v.own.rxAtomics }
func rxSends(v *volumes) uint64       { return v.own.rxSends }
func txWrites(v *volumes) uint64      { return v.own.txWrites }
func txReads(v *volumes) uint64       { return v.own.txReads }
func portRxPackets(v *volumes) uint64 { return v.port.rxPackets }
func portTxPackets(v *volumes) uint64 { return v.port.txPackets }

// Beside RDMA, each netdev has a little traffic of the kernel's own.
const (
	ethernetPackets = 20 // a second
	ethernetBytes   = 180 * ethernetPackets
	headers         = 58 + 4 // Ethernet, IPv4, UDP, BTH and ICRC, then the FCS
)

func ethernetPacketCount(v *volumes) uint64 { return uint64(v.seconds * ethernetPackets) }
func ethernetByteCount(v *volumes) uint64   { return uint64(v.seconds * ethernetBytes) }

// pmaRows are the counters of the InfiniBand specification, in ports/N/counters.
var pmaRows = append([]row{
	volume("port_rcv_data", 64, func(v *volumes) uint64 { return v.own.rxBytes / 4 }),
	volume("port_xmit_data", 64, func(v *volumes) uint64 { return v.own.txBytes / 4 }),
	volume("port_rcv_packets", 64, rxPackets),
	volume("port_xmit_packets", 64, txPackets),
	volume("unicast_rcv_packets", 64, rxPackets),
	volume("unicast_xmit_packets", 64, txPackets),
	volume("multicast_rcv_packets", 64, nil),
	volume("multicast_xmit_packets", 64, nil),
	{name: "port_xmit_wait", bits: 32, saturates: true},
}, pmaErrors()...)

func pmaErrors() []row {
	rows := slices.Concat(
		counts(4, "local_link_integrity_errors", "excessive_buffer_overrun_errors"),
		counts(8, "link_error_recovery", "link_downed", "port_rcv_constraint_errors", "port_xmit_constraint_errors"),
		counts(16, "symbol_error", "port_rcv_errors", "port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors",
			"port_xmit_discards", "VL15_dropped"),
	)
	for i := range rows {
		rows[i].saturates = true
	}
	return rows
}

// cmRows are the counters of the connection manager.
var cmRows = connectionCounters()

func connectionCounters() []row {
	var rows []row
	for _, group := range []string{"cm_tx_msgs", "cm_tx_retries", "cm_rx_msgs", "cm_rx_duplicates"} {
		for _, typ := range []string{"req", "mra", "rej", "rep", "rtu", "dreq", "drep", "sidr_req", "sidr_rep", "lap", "apr"} {
			rows = append(rows, counts(64, group+"/"+typ)...)
		}
	}
	return rows
}

// priorities is how many priorities a port has.
const priorities = 8

// eachPriority makes rows whose names have the number of a priority.
func eachPriority(formats ...string) []row {
	var rows []row
	for p := range priorities {
		for _, format := range formats {
			rows = append(rows, counts(64, fmt.Sprintf(format, p))...)
		}
	}
	return rows
}
