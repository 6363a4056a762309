package policy

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// ledgerIndex is the Catalog's PoolLedgers, under its lock.
type ledgerIndex struct {
	byName map[string]ledgerEntry
	byPool map[string]map[string]struct{} // names of a pool's ledgers
}

// ledgerEntry is one ledger.
type ledgerEntry struct {
	stamp

	pool string
	part netipx.IPRange
	held func() ledgerHeld // read when asked for
}

// ledgerHeld is the addresses that are not free.
type ledgerHeld struct {
	all  *netipx.IPSet
	kept *netipx.IPSet // without those in quarantine
}

func newLedgerIndex() ledgerIndex {
	return ledgerIndex{byName: map[string]ledgerEntry{}, byPool: map[string]map[string]struct{}{}}
}

// putLedger takes a ledger that changed, and what it says of pods.
func (c *Catalog) putLedger(obj *v1alpha1.PoolLedger) {
	known, isKnown := c.ledgers.byName[obj.Name]
	if isKnown && known.same(obj) {
		return
	}
	part, err := parseRange(obj.Spec.Part)
	if err != nil { // the granter says so; it is about no address
		part = netipx.IPRange{}
	}
	runs := obj.Spec.Runs
	entry := ledgerEntry{stampOf(obj), obj.Spec.Pool, part, sync.OnceValue(func() ledgerHeld { return heldOf(runs) })}
	c.ledgers.byName[obj.Name] = entry
	if c.ledgers.byPool[entry.pool] == nil {
		c.ledgers.byPool[entry.pool] = map[string]struct{}{}
	}
	c.ledgers.byPool[entry.pool][obj.Name] = struct{}{}
	c.uses.put(ledgerUses(obj))
	if !isKnown || known.part != entry.part {
		c.recount(entry.pool)
	}
}

func (c *Catalog) removeLedger(name string) {
	entry, ok := c.ledgers.byName[name]
	if !ok {
		return
	}
	delete(c.ledgers.byName, name)
	if delete(c.ledgers.byPool[entry.pool], name); len(c.ledgers.byPool[entry.pool]) == 0 {
		delete(c.ledgers.byPool, entry.pool)
	}
	c.uses.remove(useKey{kind: usedByLedger, name: name})
	c.recount(entry.pool)
}

// recount has the status of a pool count where no ledger is about an address.
func (c *Catalog) recount(pool string) {
	noted, ok := c.uses.noted[pool]
	if !ok {
		return
	}
	counted := noted
	counted.held = slices.DeleteFunc(slices.Clone(noted.held), func(h heldAddress) bool { return c.ledgers.isAbout(pool, h.addr) })
	c.uses.put(counted)
}

// isAbout says whether a ledger of a pool has an address in its part.
func (x *ledgerIndex) isAbout(pool string, addr netip.Addr) bool {
	for name := range x.byPool[pool] {
		if part := x.byName[name].part; part.IsValid() && part.Contains(addr) {
			return true
		}
	}
	return false
}

// heldOf are the addresses of runs.
func heldOf(runs []v1alpha1.Run) ledgerHeld {
	var all, kept netipx.IPSetBuilder
	for i := range runs {
		r, err := parseRange(runs[i].Addresses)
		if err != nil {
			continue
		}
		if all.AddRange(r); runs[i].Quarantine == nil {
			kept.AddRange(r)
		}
	}
	return ledgerHeld{built(&all), built(&kept)}
}

// ledgerUses are the pods that a ledger names. Others are known from their
// SpiderEndpoints.
func ledgerUses(obj *v1alpha1.PoolLedger) uses {
	u := uses{stamp: stampOf(obj), key: useKey{kind: usedByLedger, name: obj.Name}}
	for i := range obj.Spec.Runs {
		run := &obj.Spec.Runs[i]
		if run.Quarantine == nil || run.Quarantine.Pod == "" {
			continue
		}
		r, err := parseRange(run.Addresses)
		if err != nil {
			continue
		}
		for addr := r.From(); addr.IsValid() && r.Contains(addr); addr = addr.Next() {
			u.held = append(u.held, heldAddress{obj.Spec.Pool, addr, user{kind: usedByLedger, pod: run.Quarantine.Pod}})
		}
	}
	return u
}

// Held are the addresses of a pool that its ledgers say somebody holds: a node
// for its pods or in reserve, a pod that keeps them over its lives, or nobody, in
// quarantine. The set is never nil.
func (c *Catalog) Held(pool string) *netipx.IPSet {
	return c.unitedLedgers(pool, func(h ledgerHeld) *netipx.IPSet { return h.all })
}

// Kept are those of Held that a node has or a pod keeps, and so are none in
// quarantine.
func (c *Catalog) Kept(pool string) *netipx.IPSet {
	return c.unitedLedgers(pool, func(h ledgerHeld) *netipx.IPSet { return h.kept })
}

func (c *Catalog) unitedLedgers(pool string, of func(ledgerHeld) *netipx.IPSet) *netipx.IPSet {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var build netipx.IPSetBuilder
	for name := range c.ledgers.byPool[pool] {
		build.AddSet(of(c.ledgers.byName[name].held()))
	}
	return built(&build)
}

// maxNoted is how many addresses a pool may have whose status.allocatedIPs is
// kept, for the tools that read it: more would be too much to write each second.
const maxNoted = 1000

// Allocations is what status.allocatedIPs of a pool with that many addresses is
// to be, nil for none. Addresses that no ledger is about stay as they are noted:
// the ledger that comes takes them over. Above a thousand addresses there is
// nothing else. It fails if what is noted cannot be read.
func (c *Catalog) Allocations(obj *v2beta1.SpiderIPPool, total int64) (*string, error) {
	before, err := allocationsOf(obj)
	if err != nil {
		return nil, err
	}
	now := c.notedBefore(obj.Name, before)
	if total <= maxNoted {
		c.note(obj.Name, now)
	}
	switch {
	case len(now) == 0:
		return nil, nil
	case maps.Equal(before, now):
		return obj.Status.AllocatedIPs, nil
	}
	noted := make(map[string]allocation, len(now))
	for addr, u := range now {
		noted[addr.String()] = allocation{u.pod, u.uid}
	}
	text, err := json.Marshal(noted)
	return new(string(text)), err
}

// note adds the pods that have addresses which ledgers are about.
func (c *Catalog) note(pool string, noted map[netip.Addr]user) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	p := c.uses.byPool[pool]
	if p == nil {
		return
	}
	for addr, users := range p.users {
		if c.ledgers.isAbout(pool, addr) {
			u := firstOf(users)
			noted[addr] = user{usedByStatus, u.pod, u.uid} // as it is when it is read again
		}
	}
}

// notedBefore are the pods that a pool's status names for addresses that no
// ledger is about.
func (c *Catalog) notedBefore(pool string, noted map[netip.Addr]user) map[netip.Addr]user {
	c.mu.RLock()
	defer c.mu.RUnlock()
	left := map[netip.Addr]user{}
	maps.Copy(left, noted)
	maps.DeleteFunc(left, func(addr netip.Addr, _ user) bool { return c.ledgers.isAbout(pool, addr) })
	return left
}
