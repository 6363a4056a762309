package exporter

import (
	"strconv"

	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/inventory"
)

// subject is a device with what its labels may tell of its surroundings.
type subject struct {
	device *inventory.Device
	parent *inventory.Device // its PF; nil where it is none's
	pod    *attribution.Pod  // that has it for itself; nil where none has
}

// subject finds the surroundings of a device in the newest snapshot.
func (e *Exporter) subject(found *inventory.Device) subject {
	s := subject{device: found}
	if snapshot := e.snapshot.Load(); snapshot != nil && found.Parent != "" {
		s.parent, _ = snapshot.Device(found.Parent)
	}
	if e.config.Attributor != nil {
		s.pod, _ = e.config.Attributor.Owner(found)
	}
	return s
}

// index is the number by which the kernel knows the device.
func (s subject) index() (uint32, bool) {
	if s.device.RDMA.Index == nil {
		return 0, false
	}
	return *s.device.RDMA.Index, true
}

// netdev is the device's own netdev; nil where it has none.
func (s subject) netdev() *inventory.Netdev { return firstNetdev(s.device) }

func firstNetdev(d *inventory.Device) *inventory.Netdev {
	if d == nil || len(d.Netdevs) == 0 {
		return nil
	}
	return &d.Netdevs[0]
}

func nameOf(n *inventory.Netdev) string {
	if n == nil {
		return ""
	}
	return n.Name
}

func (s subject) parentRDMA() string {
	if s.parent == nil || s.parent.RDMA == nil {
		return ""
	}
	return s.parent.RDMA.Name
}

func (s subject) rail() string {
	if s.device.Rail == nil {
		return ""
	}
	return strconv.Itoa(*s.device.Rail)
}

// podKey is what tells pods apart: their UID, or namespace and name where that
// is not known. A pod may have several attribution.Pod, of which one knows more.
type podKey struct{ uid, namespace, name string }

func keyOf(p *attribution.Pod) podKey {
	if p.UID != "" {
		return podKey{uid: p.UID}
	}
	return podKey{namespace: p.Namespace, name: p.Name}
}

// podLabels are the labels by which the series of a pod are joined.
func podLabels(p *attribution.Pod) []counters.Label {
	return []counters.Label{
		{Name: "pod_namespace", Value: p.Namespace},
		{Name: "pod_name", Value: p.Name},
		{Name: "owner_kind", Value: p.Workload.Kind},
		{Name: "owner_namespace", Value: p.Workload.Namespace},
		{Name: "owner_name", Value: p.Workload.Name},
	}
}
