package counters

import (
	"strings"

	"railhead/internal/inventory"
	"railhead/internal/kernel/sysfs"
)

// planOthers asks for what is no counter.
func (r *Reader) planOthers(device *place) {
	r.whole = device
	rdma := r.device.RDMA
	if rdma.Index != nil {
		r.others = append(r.others,
			question{name: "states of ports", kernel: fromRDMA, tier: Errors, ask: askStates},
			question{name: "resources", kernel: fromRDMA, tier: Slow, ask: askResources})
	}
	if r.device.Kind != inventory.Virtual {
		r.others = append(r.others, question{name: "RoCE configuration", kernel: fromFiles, tier: Slow, ask: askConfig})
	}
	if r.device.PCI != nil && r.device.IsRoot() {
		r.others = append(r.others, question{name: "health reporters", kernel: fromDevlink, tier: Slow, ask: askHealth})
	}
}

// askStates asks for the states of all ports, in one dump.
func askStates(r *Reader, a Access, dst []Sample) ([]Sample, error) {
	rdma := r.device.RDMA
	ports, err := a.RDMA.Ports(*rdma.Index)
	for i := range ports {
		if where := r.place(ports[i].Number); where != nil {
			dst = r.states(dst, where, ports[i].State, ports[i].PhysState)
		}
	}
	return dst, err
}

// place is that of a port that carries the device's own traffic; nil for
// others.
func (r *Reader) place(number int) *place {
	for i := range r.device.RDMA.Ports {
		if p := &r.device.RDMA.Ports[i]; p.Number == number && !p.Representor {
			return r.atPort(p)
		}
	}
	return nil
}

// States of ports as netlink names them.
const (
	logicalStates  = "ACTIVE INIT ARMED DOWN"
	physicalStates = "LINK_UP POLLING DISABLED SLEEP PORT_CONFIGURATION_TRAINING LINK_ERROR_RECOVERY PHY_TEST"
)

func (r *Reader) states(dst []Sample, where *place, state, physical string) []Sample {
	dst = r.stateSet(dst, "rdma_port_state", where, logicalStates, state)
	return r.stateSet(dst, "rdma_port_physical_state", where, physicalStates, physical)
}

// stateSet appends one sample for each state, and one more for a state that is
// not among them. Where no state is known there is none.
func (r *Reader) stateSet(dst []Sample, name string, where *place, all, is string) []Sample {
	if is == "" {
		return dst
	}
	found := false
	for state := range strings.FieldsSeq(all) {
		dst = append(dst, r.sample(name, where, bit(state == is), state))
		found = found || state == is
	}
	if !found {
		dst = append(dst, r.sample(name, where, 1, is))
	}
	return dst
}

func bit(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// askResources asks how many objects the device has.
func askResources(r *Reader, a Access, dst []Sample) ([]Sample, error) {
	counts, err := a.RDMA.Resources(*r.device.RDMA.Index)
	for _, c := range counts {
		dst = append(dst, r.sample("rdma_device_resources", r.whole, c.Count, c.Name))
	}
	return dst, err
}

// askConfig reads how RoCE of each port is set up.
func askConfig(r *Reader, a Access, dst []Sample) ([]Sample, error) {
	rdma := r.device.RDMA
	var failed error
	for i := range rdma.Ports {
		p := &rdma.Ports[i]
		where := r.place(p.Number)
		if where == nil || p.LinkLayer == inventory.InfiniBand {
			continue
		}
		netdev := ""
		if n := r.netdev(p); n != nil && sameNetNS(n.NetNS, rdma.NetNS) && r.device.IsRoot() {
			netdev = n.Name
		}
		c, err := a.FS.RoCEConfig(rdma.Name, p.Number, netdev)
		if err != nil {
			failed = err
		}
		dst = r.config(dst, where, &c)
	}
	return dst, failed
}

func (r *Reader) config(dst []Sample, where *place, c *sysfs.RoCEConfig) []Sample {
	if c.TrafficClass != nil {
		dst = append(dst, r.sample("rdma_port_traffic_class", where, uint64(*c.TrafficClass)))
	}
	if c.Trust != "" {
		dst = append(dst, r.sample("rdma_port_trust_mode", where, 1, c.Trust))
	}
	if c.DefaultMode != "" {
		dst = append(dst, r.sample("rdma_port_roce_mode", where, 1, c.DefaultMode))
	}
	dst = r.priorities(dst, where, "np", c.NotifyECN)
	return r.priorities(dst, where, "rp", c.ReactECN)
}

// priorities appends a sample for each bit of what is switched by priority.
func (r *Reader) priorities(dst []Sample, where *place, role string, bits *uint8) []Sample {
	if bits == nil {
		return dst
	}
	for i := range len(digits) {
		dst = append(dst, r.sample("rdma_port_ecn_enabled", where, uint64(*bits>>i&1), role, digits[i:i+1]))
	}
	return dst
}

func sameNetNS(a, b *inventory.NetNS) bool {
	return a == b || a != nil && b != nil && a.ID == b.ID
}
