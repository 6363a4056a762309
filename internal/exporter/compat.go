package exporter

import (
	"fmt"
	"slices"
	"strconv"

	"railhead/internal/counters"
)

// Compat is another exporter whose series dashboards may be made for.
type Compat string

// The exporters that are known.
//
// With Spiderpool, families that it and we have under the same name (those of
// spiderpool_table.go: the kernel's RoCE counters and those of the vport) have
// its labels instead of ours, since one name with two sets of labels would be
// counted twice by every sum; families that only it has are added, also those
// two that it calls counters and are none. All other families are as ever. A
// device with two ports shows the first, because its labels know no ports.
//
// With NodeExporter, the families of its infiniband collector are added. That
// collector must be off then.
const (
	Spiderpool   Compat = "spiderpool"
	NodeExporter Compat = "node_exporter"
)

// check returns an error for a mode that is not known.
func (c Compat) check() error {
	if !slices.Contains([]Compat{Spiderpool, NodeExporter}, c) {
		return fmt.Errorf("compatibility mode %q: it may be %q or %q", c, Spiderpool, NodeExporter)
	}
	return nil
}

// families are all that may be exposed, in order. What a compatibility mode has
// under a name of ours takes its place.
func families(modes []Compat) []*counters.Family {
	var more []*counters.Family
	if slices.Contains(modes, Spiderpool) {
		more = append(more, spiderpoolFamilies...)
	}
	if slices.Contains(modes, NodeExporter) {
		more = append(more, nodeExporterInfo)
		for i := range nodeExporterStates {
			more = append(more, &nodeExporterStates[i].family)
		}
		for i := range nodeExporterCounters {
			more = append(more, &nodeExporterCounters[i].family)
		}
	}
	all := slices.DeleteFunc(slices.Clone(counters.Families()), func(ours *counters.Family) bool {
		return slices.ContainsFunc(more, func(f *counters.Family) bool { return f.Name == ours.Name })
	})
	return append(all, more...)
}

// appendRow appends a row of a family of the table, unless the filter keeps it
// back.
func (e *Exporter) appendRow(rows []row, family string, labels []counters.Label, value uint64) []row {
	f := e.catalog.known(family)
	if !f.isWanted {
		return rows
	}
	return append(rows, row{newLine(f, labels, 1), value})
}

// appendPorts appends what compatibility modes tell of ports from the snapshot.
func (e *Exporter) appendPorts(rows []row, s subject) []row {
	if !e.nodeExporter {
		return rows
	}
	for i := range s.device.RDMA.Ports {
		rows = e.appendNodeExporterPort(rows, &s.device.RDMA.Ports[i], s)
	}
	return rows
}

// isFirstPort tells whether a series is of the first port of a device, or of
// none.
func isFirstPort(s subject, labels []counters.Label) bool {
	port := labelValue(labels, "port")
	return port == "" || len(s.device.RDMA.Ports) == 0 || port == strconv.Itoa(s.device.RDMA.Ports[0].Number)
}
