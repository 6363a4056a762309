package counters

import (
	"cmp"
	"strconv"
	"strings"

	"railhead/internal/inventory"
)

// plan decides what to ask, in which tiers. What costs a command of the firmware
// for each counter, or dozens at once, is asked as rarely as it can be; see the
// sources. The order is that in which sources are preferred.
func (r *Reader) plan() {
	d, rdma := r.device, r.device.RDMA
	device := r.at("", "")
	for i := range rdma.Ports {
		p := &rdma.Ports[i]
		if p.Representor {
			r.planRepresentor(p, device)
			continue
		}
		r.planPort(p, device)
	}
	r.add(group{
		asker: &deviceFilesAsker{device: rdma.Name}, source: deviceFiles, kernel: fromFiles, tiers: tiersOf(Errors),
		port: cmp.Or(r.solePort(), device), device: device,
	})
	if d.PCI != nil && known.has(vnic, r.driver) {
		r.add(group{asker: newVNICAsker(d), source: vnic, kernel: fromDevlink, tiers: tiersOf(Slow), port: device, device: device})
	}
	r.planOthers(device)
}

// add adds a group behind those that are preferred to it.
func (r *Reader) add(g group) {
	g.rank = int32(len(r.groups) + 1)
	g.question = g.source.String() + " of " + g.port.String()
	r.groups = append(r.groups, &g)
}

// planRepresentor reads a port of an eswitch that stands for another function.
// What is counted there under its own name is not of that function.
func (r *Reader) planRepresentor(p *inventory.Port, device *place) {
	if index := r.device.RDMA.Index; index != nil {
		r.add(group{
			asker: newStatisticsAsker(*index, p.Number), source: statistics, kernel: fromRDMA, tiers: tiersOf(Slow),
			port: r.atPort(p), device: device,
			accept: func(name string) bool { return strings.HasPrefix(name, representorPrefix) },
		})
	}
}

// representorPrefix is what names of counters of an eswitch's port begin with.
// On the uplink they are there too, and always zero.
const representorPrefix = "vport_"

func (r *Reader) planPort(p *inventory.Port, device *place) {
	rdma := r.device.RDMA
	where := r.atPort(p)
	hasFiles := r.planFiles(p, where, device)
	if rdma.Index != nil {
		when := tiersOf(Errors, Slow)
		if known.hasTraffic(r.driver) {
			when |= tiersOf(Traffic)
		}
		if !r.hasSlowStatistics() {
			when &^= tiersOf(Slow)
		}
		r.add(group{
			asker: newStatisticsAsker(*rdma.Index, p.Number), source: statistics, kernel: fromRDMA, tiers: when,
			port: where, device: device,
			accept: func(name string) bool { return !strings.HasPrefix(name, representorPrefix) },
		})
	}
	r.planNetdevs(p, device, hasFiles)
	cm := &cmAsker{device: rdma.Name, port: p.Number, sparse: !r.device.IsRoot()}
	r.add(group{asker: cm, source: cmFiles, kernel: fromFiles, tiers: tiersOf(Slow), port: where, device: device})
}

// hasSlowStatistics tells whether the driver has RDMA statistics that are worth
// reading in the slow tier only, but not those of representors.
func (r *Reader) hasSlowStatistics() bool {
	for name, c := range known.counters[origin{statistics, r.driver}] {
		if c.tier == Slow && !strings.HasPrefix(name, representorPrefix) {
			return true
		}
	}
	return false
}

// planFiles reads the files of a port's counters where nothing else has its
// traffic: on InfiniBand, on mlx4, and on PFs of mlx5, where four files cost
// less than the netdev's statistics. What else is in files is of the physical
// port and read on InfiniBand only: on RoCE the driver has it elsewhere, if at
// all. It tells whether files are read.
func (r *Reader) planFiles(p *inventory.Port, where, device *place) bool {
	isInfiniBand := p.LinkLayer == inventory.InfiniBand
	switch {
	case isInfiniBand, r.driver == "mlx4":
	case r.driver == "mlx5" && r.isWholePort(p):
	case r.driver == "mlx5", known.has(statistics, r.driver), r.device.Kind == inventory.Virtual:
		return false
	}
	add := func(tier Tier) {
		r.add(group{
			asker: &portFilesAsker{device: r.device.RDMA.Name, port: p.Number, tier: tier}, source: portFiles, kernel: fromFiles,
			tiers: tiersOf(tier), port: where, device: device,
		})
	}
	add(Traffic)
	if isInfiniBand && r.device.IsRoot() {
		add(Errors)
	}
	return true
}

// isWholePort tells whether the device stands for a port of a card with all
// that its driver counts of it, so that the statistics of its netdev are dear;
// or has no netdev to ask.
func (r *Reader) isWholePort(p *inventory.Port) bool {
	return r.device.Kind == inventory.PF || r.netdev(p) == nil
}

// planNetdevs reads what the netdevs of a port count. A PF tells of the physical
// port; a VF of itself only, in few commands.
func (r *Reader) planNetdevs(p *inventory.Port, device *place, hasFiles bool) {
	if r.device.Kind == inventory.Virtual {
		return
	}
	for _, n := range r.netdevs(p) {
		where := r.at(strconv.Itoa(p.Number), n.Name)
		if known.has(driverStats, r.driver) {
			r.add(group{
				asker: newDriverStatsAsker(n.Name, r.driver), source: driverStats, kernel: fromEthtool, tiers: r.netdevTiers(p),
				port: where, device: device, plain: hasFiles && n.Name != p.Netdev,
			})
		}
		if !r.device.IsRoot() || p.LinkLayer == inventory.InfiniBand {
			continue
		}
		if n.Index > 0 {
			r.add(group{asker: &standardAsker{index: n.Index}, source: standard, kernel: fromEthtool, tiers: tiersOf(Slow), port: where, device: device})
		}
		r.add(group{asker: &prioritiesAsker{netdev: n.Name}, source: priorities, kernel: fromLink, tiers: tiersOf(Slow), port: where, device: device})
	}
}

// netdevTiers is when the driver's statistics of a netdev are worth their price.
func (r *Reader) netdevTiers(p *inventory.Port) tiers {
	switch {
	case p.LinkLayer == inventory.InfiniBand:
		return tiersOf(Slow) // the port's files have the rest
	case r.driver == "mlx5" && !r.isWholePort(p):
		return tiersOf(Traffic)
	}
	return tiersOf(Errors)
}

// netdevs are the netdevs that count what a port carries: the members of a bond
// in place of the bond, whose index is known of the device's own only.
func (r *Reader) netdevs(p *inventory.Port) []inventory.Netdev {
	own := r.netdev(p)
	switch {
	case own == nil:
		return nil
	case r.device.Bond == nil || p.Netdev != r.device.Bond.Name:
		return []inventory.Netdev{*own}
	}
	members := []inventory.Netdev{*own}
	for _, name := range r.device.Bond.Members {
		if name != own.Name {
			members = append(members, inventory.Netdev{Name: name})
		}
	}
	return members
}

// netdev is the device's own netdev of a port: not the bond that it is in, and
// also where it is in another namespace than the RDMA device.
func (r *Reader) netdev(p *inventory.Port) *inventory.Netdev {
	d := r.device
	for i := range d.Netdevs {
		if d.Netdevs[i].Name == p.Netdev && (d.Bond == nil || p.Netdev != d.Bond.Name) {
			return &d.Netdevs[i]
		}
	}
	for i := range d.Netdevs {
		if len(d.RDMA.Ports) == 1 || d.Netdevs[i].DevPort == p.Number-1 {
			return &d.Netdevs[i]
		}
	}
	return nil
}

// solePort is the place of the one port of a device that carries its own
// traffic; nil where it has several.
func (r *Reader) solePort() (sole *place) {
	for i := range r.device.RDMA.Ports {
		p := &r.device.RDMA.Ports[i]
		switch {
		case p.Representor:
		case sole != nil:
			return nil
		default:
			sole = r.atPort(p)
		}
	}
	return sole
}
