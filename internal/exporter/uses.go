package exporter

import (
	"math"
	"slices"
	"time"

	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/kernel/rdmanl"
)

// appendHolders appends which pods have or use the device, and how much of its
// traffic is told to be some pod's.
func (d *device) appendHolders(rows []row, s subject) []row {
	e, name := d.exporter, s.device.RDMA.Name
	for _, h := range d.holders() {
		rows = e.appendRow(rows, "rdma_pod_device_info", append(podLabels(h.pod),
			counters.Label{Name: "device", Value: name},
			counters.Label{Name: "netdev", Value: nameOf(s.netdev())},
			counters.Label{Name: "pf_device", Value: s.parentRDMA()},
			counters.Label{Name: "rail", Value: s.rail()},
			counters.Label{Name: "attribution", Value: h.attribution},
		), 1)
	}
	if f := e.catalog.known("rdma_pod_attribution_coverage_ratio"); f.isWanted {
		if ratio, ok := d.shares.account.Coverage(name); ok {
			const precision = 1e6
			l := newLine(f, []counters.Label{{Name: "device", Value: name}}, 1/precision)
			rows = append(rows, row{l, uint64(math.Round(ratio * precision))})
		}
	}
	return rows
}

// uses is what pods have on a device, as it was read last.
type uses struct {
	list   []attribution.Use
	of     holders // whom the device had then
	at     time.Time
	areNew bool // they are not told yet
}

// areUsesDue tells whether there is a pod of which it was not asked yet what it
// has. A first reading asks in any case.
func (d *device) areUsesDue() bool {
	if !d.isRead.Load() || !slices.Contains(d.exporter.tiers, counters.Slow) {
		return false
	}
	asked := d.shares.uses.of
	return slices.ContainsFunc(d.holders(), func(h holder) bool { return asked.find(h.pod) == nil })
}

// readUses looks at what pods have on the device: in the slow tier, and once
// before it when a pod came. An error then is left to the slow tier, which reads
// again.
func (d *device) readUses(c *rdmanl.Client, s subject, tier counters.Tier, now time.Time) error {
	isSlow, u := tier == counters.Slow, &d.shares.uses
	if isSlow && u.at.Equal(now) || !isSlow && (!d.areUsesDue() || len(d.unheld([]counters.Tier{counters.Slow}, now)) == 0) {
		return nil
	}
	index, ok := s.index()
	if !ok || c == nil || len(d.holders()) == 0 {
		if isSlow {
			u.list = nil
		}
		return nil
	}
	u.of = d.holders() // also if it blocks: it is asked once
	list, err := d.exporter.config.Attributor.Users(c, index)
	u.list, u.at, u.areNew = list, now, true
	if err != nil && !isSlow {
		u.at = time.Time{}
		return nil
	}
	return err
}

// appendUses appends what the pods that are there had on the device when it was
// read.
func (d *device) appendUses(rows []row, s subject) []row {
	there := d.holders()
	for _, u := range d.shares.uses.list {
		if u.Pod == nil {
			continue
		}
		if u.Pod = there.find(d.known(u.Pod)); u.Pod != nil {
			rows = d.exporter.appendUse(rows, s.device.RDMA.Name, &u)
		}
	}
	return rows
}

// appendUse appends what a pod has on a device.
func (e *Exporter) appendUse(rows []row, device string, u *attribution.Use) []row {
	labels := append(podLabels(u.Pod), counters.Label{Name: "device", Value: device})
	rows = e.appendRow(rows, "rdma_pod_contexts", labels, uint64(u.Contexts))
	rows = e.appendRow(rows, "rdma_pod_memory_regions", labels, uint64(u.MRs))
	rows = e.appendRow(rows, "rdma_pod_memory_region_bytes", labels, u.MRBytes)
	rows = e.appendRow(rows, "rdma_pod_cm_ids", labels, uint64(u.CMIDs))
	for kind, n := range u.QPs {
		rows = e.appendRow(rows, "rdma_pod_qps", append(labels[:len(labels):len(labels)],
			counters.Label{Name: "qp_type", Value: kind.Type},
			counters.Label{Name: "state", Value: kind.State},
		), uint64(n))
	}
	return rows
}

// podInfo are the labels that describe a pod.
func podInfo(p *attribution.Pod) []counters.Label {
	return []counters.Label{
		{Name: "pod_namespace", Value: p.Namespace},
		{Name: "pod_name", Value: p.Name},
		{Name: "pod_uid", Value: p.UID},
		{Name: "owner_api_version", Value: p.Workload.APIVersion},
		{Name: "owner_kind", Value: p.Workload.Kind},
		{Name: "owner_namespace", Value: p.Workload.Namespace},
		{Name: "owner_name", Value: p.Workload.Name},
		{Name: "reason", Value: p.Workload.Reason},
	}
}
