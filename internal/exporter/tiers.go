package exporter

import (
	"slices"
	"strings"

	"railhead/internal/counters"
)

// wantedTiers returns the tiers with a family that is exported, under its own
// name, as a pod's or in a compatibility mode. The others are not read. What
// the table of counters does not know cannot be asked for alone.
func (e *Exporter) wantedTiers() []counters.Tier {
	var tiers []counters.Tier
	for tier := range counters.Tiers {
		if slices.ContainsFunc(counters.Families(), func(f *counters.Family) bool { return f.Tier == tier && e.feeds(f) }) {
			tiers = append(tiers, tier)
		}
	}
	return tiers
}

// feeds tells whether a family or what is made of it is exported.
func (e *Exporter) feeds(f *counters.Family) bool {
	if strings.HasPrefix(f.Name, "rdma_exporter_") {
		return false
	}
	if e.catalog.known(f.Name).isWanted {
		return true
	}
	if f.Pod != "" && e.catalog.known(f.Pod).isWanted {
		return true
	}
	if e.spiderpool && f.Name == spiderpoolTOSSource && e.catalog.known(spiderpoolTOS).isWanted {
		return true
	}
	return e.nodeExporter && slices.ContainsFunc(nodeExporterCounters, func(c nodeExporterCounter) bool {
		return c.ours == f.Name && e.catalog.known(c.family.Name).isWanted
	})
}
