package modeltest

import (
	"fmt"
	"net/netip"
	"slices"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/ipam/holder"
)

// A cluster is its users and their workloads.
type cluster struct {
	w           *world
	reserveMost int64
	rails       []string // pools of one group
	solo        string
	other       string // beside solo, in the same subnet
	six         string
	sets        []*statefulSet
	vms         []*vm
	made        int
	crowded     string                             // the machine that most pods go to, where w.drifts
	ever        map[string]*netipx.IPSet           // what a pool ever had
	always      map[string]*netipx.IPSet           // what it had all the time
	pins        map[string]map[string][]netip.Addr // what an identity has, by pool
	homes       map[string]types.UID               // the node it was on last
}

func (c *cluster) begin(w *world) {
	c.w, c.reserveMost = w, []int64{1, 2, 4, 32}[w.rng.IntN(4)]
	c.ever, c.pins = map[string]*netipx.IPSet{}, map[string]map[string][]netip.Addr{}
	c.always = map[string]*netipx.IPSet{}
	c.homes = map[string]types.UID{}
	most := []int{4, 20, 20}[w.rng.IntN(3)] // some clusters are always short
	size := 4 + w.rng.IntN(most)
	for i := range 1 + w.rng.IntN(4) {
		subnet := netip.MustParsePrefix(fmt.Sprintf("10.0.%d.0/24", i))
		n := size
		if w.rarely(8) {
			n = 4 + w.rng.IntN(20)
		}
		c.rails = append(c.rails, c.addPool(fmt.Sprintf("rail%d", i), subnet, from(subnet, 10, n)))
	}
	subnet := netip.MustParsePrefix("10.1.0.0/16")
	c.solo = c.addPool("solo", subnet, from(subnet, 2040, 4+w.rng.IntN(most))) // over the border of two parts
	c.other = c.addPool("other", subnet, from(subnet, 300, 2+w.rng.IntN(6)))
	subnet = netip.MustParsePrefix("2001:db8::/64")
	if w.chance(50) {
		c.six = c.addPool("six", subnet, from(subnet, 16, 4+w.rng.IntN(most)))
	} else {
		c.six = c.addPool("six", subnet, setOf(netipx.RangeOfPrefix(subnet)))
	}
	for i := range w.rng.IntN(3) {
		c.sets = append(c.sets, &statefulSet{name: fmt.Sprintf("set%d", i), replicas: 1 + w.rng.IntN(3), shape: c.shape()})
	}
	for i := range w.rng.IntN(2) {
		c.vms = append(c.vms, &vm{name: fmt.Sprintf("vm%d", i), nics: c.shape()})
	}
	if w.chance(30) {
		c.foreign()
	}
}

func setOf(ranges ...netipx.IPRange) *netipx.IPSet {
	var b netipx.IPSetBuilder
	for _, r := range ranges {
		b.AddRange(r)
	}
	set, _ := b.IPSet()
	return set
}

// from is n addresses of a subnet, beginning with a host part.
func from(subnet netip.Prefix, first, n int) *netipx.IPSet {
	a := subnet.Addr()
	for range first {
		a = a.Next()
	}
	end := a
	for range n - 1 {
		end = end.Next()
	}
	return setOf(netipx.IPRangeFrom(a, end))
}

func (c *cluster) addPool(name string, subnet netip.Prefix, set *netipx.IPSet) string {
	c.putPool(&poolObject{name: name, uid: c.w.api.uid(), subnet: subnet, addresses: set})
	return name
}

func (c *cluster) putPool(p *poolObject) {
	var b netipx.IPSetBuilder
	b.AddSet(p.addresses)
	if old := c.ever[p.name]; old != nil {
		b.AddSet(old)
	}
	c.ever[p.name], _ = b.IPSet()
	if old := c.always[p.name]; old == nil {
		c.always[p.name] = p.addresses
	} else {
		var b netipx.IPSetBuilder
		b.AddSet(old)
		b.Intersect(p.addresses)
		c.always[p.name], _ = b.IPSet()
	}
	c.w.api.pools.put(p.name, p)
}

// foreign is a pod that had an address before Railhead came.
func (c *cluster) foreign() {
	p := c.w.api.pools.live[c.solo]
	addr := p.addresses.Ranges()[0].From()
	pod := &podObject{name: name("old", "pod"), uid: c.w.api.uid(), node: "elsewhere", nodeUID: "elsewhere"}
	c.w.api.pods.put(pod.name.String(), pod)
	c.w.api.uses.put(pod.name.String(), &use{pod: pod.name, foreign: addr, poolName: c.solo})
	c.w.wire.claim(&sandbox{pod: pod, id: "old", addresses: []netip.Addr{addr}})
	c.w.seen("in use before Railhead")
}

// addPod makes a pod and binds it to a machine.
func (c *cluster) addPod(n types.NamespacedName, m *machine, identity string, migration bool, nics []holder.NIC) *podObject {
	if !valid(nics) || c.w.api.pods.live[n.String()] != nil {
		return nil
	}
	p := &podObject{name: n, uid: c.w.api.uid(), node: m.name, nodeUID: m.uid, identity: identity, migration: migration, nics: nics}
	c.w.note("pod %s (%s) to %s, identity %q", n, p.uid, m, identity)
	c.w.api.pods.put(n.String(), p)
	return p
}

// schedulable is a machine that gets pods: its Node is there.
func (c *cluster) schedulable() *machine {
	var fit []*machine
	for _, m := range c.w.machines {
		if n := c.w.api.nodes.live[m.name]; n != nil && n.uid == m.uid && !n.fenced && !m.frozen {
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	if i := slices.IndexFunc(fit, func(m *machine) bool { return m.name == c.crowded }); i >= 0 && c.w.chance(85) {
		return fit[i]
	}
	return fit[c.w.rng.IntN(len(fit))]
}

func (c *cluster) ordinary(m *machine, nics []holder.NIC) *podObject {
	c.made++
	return c.addPod(name("ns", fmt.Sprintf("pod%d", c.made)), m, "", false, nics)
}

// step is one deed of a user or of a workload's controller.
func (c *cluster) step() {
	w := c.w
	if w.drifts && w.rarely(25) {
		c.crowded = w.pick().name
	}
	m := c.schedulable()
	switch n := w.rng.IntN(100); {
	case m == nil:
	case n < 35:
		nics := c.shape()
		if w.rarely(8) {
			nics = c.exact()
		}
		c.ordinary(m, nics)
	case n < 65:
		c.removePod(w.rarely(10))
	case n < 90 && !w.calm:
		c.controlSets(m)
	case n < 95:
		c.migrate(m)
	default:
		c.cleanUp()
	}
}

func (c *cluster) removePod(force bool) {
	names := c.w.api.pods.names()
	if len(names) == 0 {
		return
	}
	c.remove(c.w.api.pods.live[names[c.w.rng.IntN(len(names))]], force)
}

// remove ends a pod as its API does: the kubelet takes the object away when it
// is done, unless somebody is impatient.
func (c *cluster) remove(p *podObject, force bool) {
	foreign := p.nodeUID == "elsewhere"
	if force || foreign {
		c.w.note("pod %s (%s) removed at once", p.name, p.uid)
		c.w.api.pods.remove(p.name.String())
		if foreign {
			c.removeForeign(p)
		} else {
			c.w.seen("pod force-deleted")
		}
		return
	}
	ending := *p
	ending.ending = true
	c.w.note("pod %s (%s) deleted", p.name, p.uid)
	c.w.api.pods.put(p.name.String(), &ending)
}

func (c *cluster) removeForeign(p *podObject) {
	for _, boxes := range c.w.wire.claims {
		for _, s := range boxes {
			if s.pod == p {
				c.w.wire.drop(s)
				c.w.api.uses.remove(p.name.String())
				return
			}
		}
	}
}
