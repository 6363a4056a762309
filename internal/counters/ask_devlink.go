package counters

import (
	"maps"
	"slices"

	"railhead/internal/inventory"
	"railhead/internal/kernel/devlink"
)

// vnicAsker asks the vnic health reporter of a function.
type vnicAsker struct {
	reporter devlink.Reporter
	driver   string
	names    []string
	values   []uint64
}

func newVNICAsker(d *inventory.Device) *vnicAsker {
	if d.Kind == inventory.SF {
		return &vnicAsker{reporter: devlink.Reporter{Bus: "auxiliary", Device: d.ID, Name: "vnic"}, driver: Driver(d)}
	}
	return &vnicAsker{reporter: devlink.Reporter{Bus: "pci", Device: d.PCI.Address, Name: "vnic"}, driver: Driver(d)}
}

func (v *vnicAsker) ask(a Access) (names []string, values []uint64, err error) {
	found, err := a.Devlink.Diagnose(v.reporter)
	if err != nil {
		return nil, nil, err
	}
	if names := slices.Sorted(maps.Keys(found)); !slices.Equal(names, v.names) {
		known.share(vnic, v.driver, names)
		v.names = names
	}
	v.values = v.values[:0]
	for _, name := range v.names {
		v.values = append(v.values, found[name])
	}
	return v.names, v.values, nil
}

// askHealth asks for the health reporters of a PCI function.
func askHealth(r *Reader, a Access, dst []Sample) ([]Sample, error) {
	where := r.whole
	reporters, err := a.Devlink.HealthReporters("pci", r.device.PCI.Address)
	for i := range reporters {
		h := &reporters[i]
		if h.Port != nil {
			continue
		}
		dst = append(dst,
			r.sample("rdma_device_health_state", where, 1, h.Name, h.State),
			r.sample("rdma_devlink_health_reporter_errors", where, h.Errors, h.Name),
			r.sample("rdma_devlink_health_reporter_recoveries", where, h.Recoveries, h.Name))
	}
	return dst, err
}
