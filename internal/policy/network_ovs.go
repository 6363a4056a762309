package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// readOVS reads the block of ports of Open vSwitch.
func (d *draft) readOVS(s *v2beta1.OVSSpec, at *field.Path) {
	d.OVS = &OVS{Bridge: s.Bridge, Trunk: s.Trunk}
	if s.Bridge == "" {
		d.fail(field.Required(at.Child("bridge"), `want the name of the bridge, such as "br1"`))
	} else {
		d.netdev(s.Bridge, at.Child("bridge"))
	}
	if s.DeviceID != nil {
		d.OVS.DeviceID = *s.DeviceID
	}
	d.VLAN = d.vlan(*s.VLAN, at.Child("vlan"))
	for i := range s.Trunk {
		d.trunk(&s.Trunk[i], at.Child("trunk").Index(i))
	}
	d.readPools(s.IPPools, at.Child("ippools"))
}

// trunk wants one VLAN, or a first and a last one.
func (d *draft) trunk(t *v2beta1.Trunk, at *field.Path) {
	for _, f := range []struct {
		name string
		id   *uint
	}{{"id", t.ID}, {"minID", t.MinID}, {"maxID", t.MaxID}} {
		if f.id != nil && *f.id > maxVLAN {
			d.fail(field.Invalid(at.Child(f.name), *f.id, fmt.Sprintf("want 0 to %d", maxVLAN)))
		}
	}
	switch {
	case t.ID == nil && t.MinID == nil && t.MaxID == nil:
		d.fail(field.Required(at, "want id for one VLAN, or minID and maxID for a range"))
	case t.MinID != nil && t.MaxID == nil:
		d.fail(field.Required(at.Child("maxID"), "minID is set: want the last VLAN of the range"))
	case t.MinID == nil && t.MaxID != nil:
		d.fail(field.Required(at.Child("minID"), "maxID is set: want the first VLAN of the range"))
	case t.MinID != nil && *t.MinID > *t.MaxID:
		d.fail(field.Invalid(at.Child("minID"), *t.MinID, fmt.Sprintf("want maxID, which is %d, or less", *t.MaxID)))
	}
}
