package exporter

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"railhead/internal/counters"
)

// isSpiderpool tells whether a family has the name of one of Spiderpool's.
func isSpiderpool(f *counters.Family) bool {
	return f.Kind == counters.Counter && (slices.Contains(spiderpoolCounters, f.Name) || strings.HasPrefix(f.Name, "rdma_") && strings.Contains(f.Name, "_vport_"))
}

// spiderpoolLabels are the labels that Spiderpool gives a series. is_root and
// the parent are what they are meant to be, also where its own way of finding
// them fails: on a second port, with a MAC address of one's own.
func (e *Exporter) spiderpoolLabels(series *counters.Series, s subject) []counters.Label {
	labels := append(e.spiderpoolDevice(series, s),
		counters.Label{Name: "node_guid", Value: spiderpoolGUID(s.device.RDMA.NodeGUID)},
		counters.Label{Name: "sys_image_guid", Value: spiderpoolGUID(s.device.RDMA.SysImageGUID)},
		counters.Label{Name: "is_root", Value: strconv.FormatBool(s.device.IsRoot())},
		counters.Label{Name: "rdma_parent_name", Value: nameOf(firstNetdev(s.parent))},
	)
	if s.pod != nil {
		w := s.pod.Workload
		labels = append(labels,
			counters.Label{Name: "pod_namespace", Value: s.pod.Namespace},
			counters.Label{Name: "pod_name", Value: s.pod.Name},
			counters.Label{Name: "owner_api_version", Value: w.APIVersion},
			counters.Label{Name: "owner_kind", Value: w.Kind},
			counters.Label{Name: "owner_namespace", Value: w.Namespace},
			counters.Label{Name: "owner_name", Value: w.Name},
		)
	}
	for _, own := range series.Family.Labels {
		labels = append(labels, counters.Label{Name: own, Value: labelValue(series.Labels, own)})
	}
	return labels
}

func (e *Exporter) spiderpoolDevice(series *counters.Series, s subject) []counters.Label {
	return []counters.Label{
		{Name: "node_name", Value: e.config.NodeName},
		{Name: "ifname", Value: s.device.RDMA.Name},
		{Name: "net_dev_name", Value: cmp.Or(labelValue(series.Labels, "netdev"), nameOf(s.netdev()))},
	}
}

// spiderpoolGUID writes a GUID (0c42:a103:0065:1234) as Spiderpool does: its
// bytes from the last to the first, 34:12:65:00:03:a1:42:0c.
func spiderpoolGUID(guid string) string {
	digits := strings.ReplaceAll(guid, ":", "")
	if len(digits)%2 != 0 {
		return guid
	}
	var pairs []string
	for i := len(digits); i > 0; i -= 2 {
		pairs = append(pairs, digits[i-2:i])
	}
	return strings.Join(pairs, ":")
}

// appendSpiderpoolClass appends the series of the traffic class of a device that
// is a root one, where the series is ours of it.
func (e *Exporter) appendSpiderpoolClass(dst []line, series *counters.Series, s subject) []line {
	f := e.catalog.known(spiderpoolTOS)
	if series.Family.Name != spiderpoolTOSSource || !s.device.IsRoot() || !f.isWanted || !isFirstPort(s, series.Labels) {
		return dst
	}
	return append(dst, line{family: f, labels: texts(nil).of(e.spiderpoolDevice(series, s)), scale: scaleOf(series)})
}
