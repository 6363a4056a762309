package policy

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// States of IBSRIOVSpec.LinkState.
const (
	linkAuto    = "auto"
	linkEnable  = "enable"
	linkDisable = "disable"
)

// readSRIOV reads the block of VFs of Ethernet NICs.
func (d *draft) readSRIOV(s *v2beta1.SRIOVSpec, at *field.Path) {
	d.readVFResource(s.ResourceName, at.Child("resourceName"))
	d.VLAN = d.vlan(*s.VLANID, at.Child("vlanID"))
	d.MTU = d.mtu(*s.MTU, at.Child("mtu"))
	d.SRIOV = &SRIOV{MinTxRateMbps: *s.MinTxRateMbps, MaxTxRateMbps: *s.MaxTxRateMbps}
	d.rates(at)
	d.RDMAIsolation = d.either(at, "enableRdma", s.EnableRDMA, "rdmaIsolation", s.RDMAIsolation)
	d.readPools(s.IPPools, at.Child("ippools"))
}

// rates wants what drivers accept: a maximum of 0 is none.
func (d *draft) rates(at *field.Path) {
	least, most := d.SRIOV.MinTxRateMbps, d.SRIOV.MaxTxRateMbps
	d.rate(least, at.Child("minTxRateMbps"))
	d.rate(most, at.Child("maxTxRateMbps"))
	if most > 0 && least > most {
		d.fail(field.Invalid(at.Child("minTxRateMbps"), least, fmt.Sprintf("want maxTxRateMbps, which is %d, or less", most)))
	}
}

func (d *draft) rate(mbps int, at *field.Path) {
	if mbps < 0 {
		d.fail(field.Invalid(at, mbps, "want 0 for no limit, or Mbit/s"))
	}
}

// either is what the old or the new spelling says, false if neither is set. Both
// may stand if they agree. The old one is not rewritten into the new one: the
// next change of the old one alone, as kubectl apply makes it, would contradict.
func (d *draft) either(at *field.Path, old string, before *bool, name string, now *bool) bool {
	switch {
	case before == nil && now == nil:
		return false
	case before == nil:
		return *now
	case now != nil && *before != *now:
		d.fail(field.Invalid(at.Child(old), *before, fmt.Sprintf("is the old spelling of %s, which is %t: want %s alone", name, *now, name)))
	}
	return *before
}

// readIBSRIOV reads the block of VFs of InfiniBand HCAs.
func (d *draft) readIBSRIOV(s *v2beta1.IBSRIOVSpec, at *field.Path) {
	d.readVFResource(s.ResourceName, at.Child("resourceName"))
	d.IB = &IB{
		LinkState:    *s.LinkState,
		IBKubernetes: d.either(at, "ibKubernetesEnabled", s.IBKubernetesEnabled, "enableIbKubernetes", s.EnableIBKubernetes),
	}
	if s.Pkey != nil {
		d.IB.Pkey = *s.Pkey
		d.pkey(*s.Pkey, at.Child("pkey"))
	}
	switch d.IB.LinkState {
	case linkAuto, linkEnable, linkDisable:
	default:
		d.fail(field.NotSupported(at.Child("linkState"), d.IB.LinkState, []string{linkAuto, linkEnable, linkDisable}))
	}
	d.RDMAIsolation = *s.RDMAIsolation
	d.readPools(s.IPPools, at.Child("ippools"))
}

// pkey wants a partition key: the partition in 15 bits, full membership in the one above.
func (d *draft) pkey(key string, at *field.Path) {
	if key == "" {
		return
	}
	digits, ok := cutHex(key)
	n, err := strconv.ParseUint(digits, 16, 16)
	if !ok || err != nil || n&0x7fff == 0 {
		d.fail(field.Invalid(at, key, `want a partition key as "0x" and up to 4 hexadecimal digits that name a partition (the low 15 bits) other than 0, such as "0x8001"`))
	}
}

// cutHex is what stands behind "0x".
func cutHex(s string) (string, bool) {
	if len(s) > 2 && len(s) <= 6 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		return s[2:], true
	}
	return "", false
}

// readIPoIB reads the block of IPoIB interfaces.
func (d *draft) readIPoIB(s *v2beta1.IPoIBSpec, at *field.Path) {
	if s.Master == "" {
		d.fail(field.Required(at.Child("master"), `want the IPoIB netdev of the node, such as "ib0"`))
	} else {
		d.netdev(s.Master, at.Child("master"))
		d.Masters = []string{s.Master}
	}
	d.readPools(s.IPPools, at.Child("ippools"))
}
