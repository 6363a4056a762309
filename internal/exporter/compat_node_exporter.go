package exporter

import (
	"strconv"

	"railhead/internal/counters"
	"railhead/internal/inventory"
)

// nodeExporterCounter is a family of node_exporter with the values of one of
// ours.
type nodeExporterCounter struct {
	family counters.Family
	ours   string
}

// appendNodeExporterLines appends the series of node_exporter that are one of
// ours.
func (e *Exporter) appendNodeExporterLines(dst []line, series *counters.Series, shared texts) []line {
	labels := []counters.Label{
		{Name: "device", Value: labelValue(series.Labels, "device")},
		{Name: "port", Value: labelValue(series.Labels, "port")},
	}
	for i := range nodeExporterCounters {
		c := &nodeExporterCounters[i]
		if c.ours != series.Family.Name {
			continue
		}
		if f := e.catalog.of(&c.family); f.isWanted {
			dst = append(dst, line{family: f, labels: shared.of(labels), scale: scaleOf(series)})
		}
	}
	return dst
}

// appendNodeExporterPort adds the families that the snapshot tells.
func (e *Exporter) appendNodeExporterPort(rows []row, p *inventory.Port, s subject) []row {
	labels := []counters.Label{
		{Name: "device", Value: s.device.RDMA.Name},
		{Name: "port", Value: strconv.Itoa(p.Number)},
	}
	for i := range nodeExporterStates {
		state := &nodeExporterStates[i]
		if value, ok := state.value(p); ok {
			rows = e.appendRow(rows, state.family.Name, labels, value)
		}
	}
	if p != &s.device.RDMA.Ports[0] {
		return rows
	}
	return e.appendRow(rows, nodeExporterInfo.Name, []counters.Label{
		{Name: "board_id", Value: s.device.RDMA.BoardID},
		{Name: "device", Value: s.device.RDMA.Name},
		{Name: "firmware_version", Value: s.device.RDMA.Firmware},
		{Name: "hca_type", Value: s.device.RDMA.HCAType},
	}, 1)
}

// stateID is the number that the kernel has for the state of a port.
func stateID(p *inventory.Port) (uint64, bool) {
	id, ok := map[string]uint64{"DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4, "ACTIVE_DEFER": 5}[p.State]
	return id, ok
}

func physicalStateID(p *inventory.Port) (uint64, bool) {
	id, ok := map[string]uint64{
		"SLEEP": 1, "POLLING": 2, "DISABLED": 3, "PORT_CONFIGURATION_TRAINING": 4,
		"LINK_UP": 5, "LINK_ERROR_RECOVERY": 6, "PHY_TEST": 7,
	}[p.PhysState]
	return id, ok
}

func rate(p *inventory.Port) (uint64, bool) { return uint64(p.Gigabits * 1e9 / 8), p.Gigabits > 0 }
