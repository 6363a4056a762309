package simulation

import "strconv"

// mlx5 is the driver whose vendor's package has files for the configuration of
// RoCE.
const mlx5 = "mlx5"

// configuresRoCE tells whether a function has files for the configuration of
// RoCE: a PF of mlx5 has, on Ethernet.
func (f *function) configuresRoCE() bool {
	return f.card.spec.Driver == mlx5 && f.vf < 0 && !f.isInfiniBand()
}

// writeTrust writes by what the netdev sorts packets into priorities, and for
// which of them congestion control is on.
func (f *function) writeTrust(dir string) {
	if !f.configuresRoCE() {
		return
	}
	tree := f.netPlace.tree
	tree.write(dir+"/qos/trust", "dscp")
	for p := range 8 {
		on := "0"
		if p == f.card.priority {
			on = "1"
		}
		tree.write(dir+"/ecn/roce_np/enable/"+strconv.Itoa(p), on)
		tree.write(dir+"/ecn/roce_rp/enable/"+strconv.Itoa(p), on)
	}
}

// writeTrafficClass writes the traffic class that the driver gives to all RoCE:
// the DSCP of the priority, as 8 values to each, and that ECN is understood.
func (f *function) writeTrafficClass(dir string) {
	if f.configuresRoCE() {
		f.place.tree.write(dir+"/tc/1/traffic_class", "Global tclass="+strconv.Itoa((f.card.priority*8+2)<<2|2))
	}
}
