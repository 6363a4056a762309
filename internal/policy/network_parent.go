package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/pkg/utils"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// Modes of VlanSpec.VLANMode.
const (
	vlanManual = "manual"
	vlanAuto   = "auto"
)

const (
	maxVLAN     = 4094
	maxBondMode = 6
	maxNetdev   = 15 // bytes of a netdev's name, IFNAMSIZ less the zero
	minMTU      = 68 // of IPv4
	maxMTU      = 65535
)

// readParent reads the block of macvlan, ipvlan and vlan.
func (d *draft) readParent(p *v2beta1.Parent, at *field.Path) {
	d.readMasters(p.Master, at.Child("master"))
	d.readBond(p, at.Child("bond"))
	d.MTU = d.mtu(*p.MTU, at.Child("mtu"))
	d.VLAN = d.vlan(*p.VLANID, at.Child("vlanID"))
	d.readSharedResource(p, at)
	d.readPools(p.IPPools, at.Child("ippools"))
}

func (d *draft) readMasters(masters []string, at *field.Path) {
	if len(masters) == 0 {
		d.fail(field.Required(at, `want one netdev of the node or more, such as ["ens6f0np0"]`))
	}
	for i, name := range masters {
		if slices.Contains(masters[:i], name) {
			d.fail(field.Duplicate(at.Index(i), name))
			continue
		}
		d.netdev(name, at.Index(i))
	}
	d.Masters = masters
}

// netdev wants a name that Linux accepts for a netdev.
func (d *draft) netdev(name string, at *field.Path) {
	if err := utils.ValidateInterfaceName(name); err != nil {
		d.fail(field.Invalid(at, name, netdevDetail))
	}
}

const netdevDetail = `want the name of a netdev: 1 to 15 bytes, without "/", ":" and spaces, and neither "." nor ".."`

// readBond wants a bond below several masters.
func (d *draft) readBond(p *v2beta1.Parent, at *field.Path) {
	if p.Bond == nil {
		if len(p.Master) > 1 {
			d.fail(field.Required(at, fmt.Sprintf(`%d masters want a bond with a name and a mode, such as {"name": "bond0", "mode": 1}`, len(p.Master))))
		}
		return
	}
	b := Bond{Name: p.Bond.Name, Mode: p.Bond.Mode}
	if b.Name == "" {
		d.fail(field.Required(at.Child("name"), "want the name of the bond"))
	} else {
		d.netdev(b.Name, at.Child("name"))
	}
	if slices.Contains(p.Master, b.Name) {
		d.fail(field.Invalid(at.Child("name"), b.Name, "is one of the masters: want a name of its own"))
	}
	if b.Mode < 0 || b.Mode > maxBondMode {
		d.fail(field.Invalid(at.Child("mode"), b.Mode, "want 0 (balance-rr), 1 (active-backup), 2 (balance-xor), 3 (broadcast), 4 (802.3ad), 5 (balance-tlb) or 6 (balance-alb)"))
	}
	if p.Bond.Options != nil {
		b.Options = *p.Bond.Options
		d.bondOptions(b.Options, at.Child("options"))
	}
	if len(p.Master) < 2 {
		d.warn(at, "has no effect with one master")
		return
	}
	d.Bond = &b
}

// bondOptions wants "key=value;key=value".
func (d *draft) bondOptions(options string, at *field.Path) {
	if options == "" {
		return
	}
	seen := map[string]bool{}
	for option := range strings.SplitSeq(options, ";") {
		key, value, ok := strings.Cut(option, "=")
		switch {
		case !ok || key == "" || value == "" || strings.ContainsAny(option, " \t\r\n"):
			d.fail(field.Invalid(at, options, fmt.Sprintf(`%q is no option: want "key=value;key=value" without spaces, such as "miimon=100;lacp_rate=1"`, option)))
		case key == "mode":
			d.fail(field.Invalid(at, options, "the mode does not belong here: want it in bond.mode"))
		case seen[key]:
			d.fail(field.Invalid(at, options, fmt.Sprintf("%s is set twice", key)))
		case !slices.Contains(bondOptions, key):
			d.warn(at, "%s is no bonding option of Linux that is known here", key)
		}
		seen[key] = true
	}
}

func (d *draft) mtu(mtu int32, at *field.Path) int32 {
	if mtu != 0 && (mtu < minMTU || mtu > maxMTU) {
		d.fail(field.Invalid(at, mtu, fmt.Sprintf("want 0 to leave it as it is, or %d to %d", minMTU, maxMTU)))
	}
	return mtu
}

func (d *draft) vlan(id int32, at *field.Path) int32 {
	if id < 0 || id > maxVLAN {
		d.fail(field.Invalid(at, id, fmt.Sprintf("want 0 for none, or 1 to %d", maxVLAN)))
	}
	return id
}

// readVLANDevice wants a name that the VLAN device between master and
// interface can have; a VLAN that there is not is refused already.
func (d *draft) readVLANDevice(at *field.Path) {
	name := d.parent() + "." + strconv.Itoa(int(d.VLAN))
	if d.VLAN <= 0 || d.VLAN > maxVLAN || len(d.parent()) > maxNetdev || len(name) <= maxNetdev {
		return
	}
	d.fail(field.Invalid(at.Child("vlanID"), d.VLAN, fmt.Sprintf(
		"the VLAN device would be %s, and names of netdevs have %d bytes at most: want a shorter master, or a VLAN device made on the node as the master and no vlanID", name, maxNetdev)))
}

// readVLANMode reads what only networks of type vlan have.
func (d *draft) readVLANMode(v *v2beta1.VlanSpec, at *field.Path) {
	switch *v.VLANMode {
	case vlanManual:
		if d.VLAN == 0 {
			d.warn(at.Child("vlanID"), "is 0: frames are tagged with VLAN 0, which is a priority and no VLAN")
		}
	case vlanAuto:
		d.VLANAuto = true
		if d.VLAN != 0 {
			d.fail(field.Invalid(at.Child("vlanID"), d.VLAN, "vlanMode is auto, where the VLAN comes with the address: want no vlanID, or vlanMode manual"))
		}
	default:
		d.fail(field.NotSupported(at.Child("vlanMode"), *v.VLANMode, []string{vlanManual, vlanAuto}))
	}
}
