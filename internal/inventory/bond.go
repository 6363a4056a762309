package inventory

import (
	"cmp"
	"slices"
)

// addBonds marks the members of bonds. What a bond could do is what its members
// could: as a netdev it has no bounds of its own.
func (j *joiner) addBonds(v *view) {
	bonds := map[string]*Bond{}
	for _, n := range v.netdevs {
		if n.bondMode != "" {
			bonds[n.Name] = &Bond{Name: n.Name, Mode: n.bondMode, Members: []string{}}
		}
	}
	limits := map[string]*Port{}
	for _, n := range v.netdevs {
		if b := bonds[n.Master]; b != nil {
			b.Members = append(b.Members, n.Name)
			limits[b.Name] = limitsWith(limits[b.Name], n, b.Mode)
		}
	}
	for _, d := range j.devices {
		for _, n := range d.Netdevs {
			if b := bonds[n.Master]; b != nil && n.NetNS == nil {
				d.Bond = b
			}
		}
		if d.RDMA != nil && d.RDMA.NetNS == nil {
			d.RDMA.setLimits(limits)
		}
	}
	for _, b := range bonds {
		slices.Sort(b.Members)
	}
}

// limitsWith adds a member to what a bond could do: the MTU of the least, and
// the speed of all, but where only one is active.
func limitsWith(l *Port, member netdev, mode string) *Port {
	if l == nil {
		l = &Port{MaxMTU: member.MaxMTU}
	}
	l.MaxMTU = min(l.MaxMTU, member.MaxMTU)
	speed := gigabitsOf(member.maxMegabits)
	if mode == "active-backup" || mode == "broadcast" {
		l.MaxGigabits = max(l.MaxGigabits, speed)
	} else {
		l.MaxGigabits += speed
	}
	return l
}

// addCarriers marks functions without an RDMA device whose netdev, or the bond
// above it, is a port of another function's.
func (j *joiner) addCarriers() {
	carriers := map[string]string{} // netdev → RDMA device
	for _, d := range j.devices {
		if d.RDMA == nil || d.RDMA.NetNS != nil {
			continue
		}
		for _, p := range d.RDMA.Ports {
			if p.Netdev != "" && !p.Representor {
				carriers[p.Netdev] = d.RDMA.Name
			}
		}
	}
	for _, d := range j.devices {
		if d.RDMA != nil {
			continue
		}
		for _, n := range d.Netdevs {
			if n.NetNS == nil {
				d.CarriedBy = cmp.Or(d.CarriedBy, carriers[n.Name], carriers[n.Master])
			}
		}
	}
}

// setLimits gives ports that are bonds what these could do.
func (r *RDMA) setLimits(bonds map[string]*Port) {
	for i := range r.Ports {
		if l := bonds[r.Ports[i].Netdev]; l != nil {
			r.Ports[i].MaxMTU, r.Ports[i].MaxGigabits = l.MaxMTU, l.MaxGigabits
		}
	}
}
