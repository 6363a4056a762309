package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// useIndex is who has which address of which pool, under the Catalog's lock.
// One address may be known from several sources.
type useIndex struct {
	byKey  map[useKey]uses
	byPool map[string]*poolUsers
	// noted is what the status of each pool names, of which that counts which no
	// ledger is about.
	noted map[string]uses
}

// poolUsers are the pods that have addresses of one pool.
type poolUsers struct {
	users map[netip.Addr][]user // one for each source
	// set has all addresses but for those that changed since it was made.
	set     *netipx.IPSet
	changed map[netip.Addr]struct{}
}

// useKey is one source of uses.
type useKey struct {
	kind            useKind
	namespace, name string
}

// useKind is the kind of object that says what is used.
type useKind int

const (
	usedByEndpoint useKind = iota // SpiderEndpoint
	usedByLedger                  // a pod that a PoolLedger names: it had the address before there were ledgers
	usedByStatus                  // status.allocatedIPs of a SpiderIPPool
)

// uses are the addresses that one source names.
type uses struct {
	stamp

	key  useKey
	held []heldAddress
}

// heldAddress is one address of a pool and the pod that has it.
type heldAddress struct {
	pool string
	addr netip.Addr
	user user
}

// user is a pod that has an address, by one source.
type user struct {
	kind useKind
	pod  string // "namespace/name"
	uid  string // empty: not known
}

func newUseIndex() useIndex {
	return useIndex{byKey: map[useKey]uses{}, byPool: map[string]*poolUsers{}, noted: map[string]uses{}}
}

// knows says whether an endpoint has not changed since.
func (x *useIndex) knows(obj *v2beta1.SpiderEndpoint) bool {
	known, ok := x.byKey[useKey{kind: usedByEndpoint, namespace: obj.Namespace, name: obj.Name}]
	return ok && known.same(obj)
}

func (x *useIndex) put(u uses) {
	if known, ok := x.byKey[u.key]; ok && slices.Equal(known.held, u.held) {
		x.byKey[u.key] = u
		return
	}
	x.remove(u.key)
	if len(u.held) == 0 {
		return
	}
	x.byKey[u.key] = u
	for _, h := range u.held {
		if x.byPool[h.pool] == nil {
			x.byPool[h.pool] = &poolUsers{users: map[netip.Addr][]user{}, set: &netipx.IPSet{}, changed: map[netip.Addr]struct{}{}}
		}
		x.byPool[h.pool].add(h)
	}
}

func (x *useIndex) remove(key useKey) {
	for _, h := range x.byKey[key].held {
		p := x.byPool[h.pool]
		if p.drop(h); len(p.users) == 0 {
			delete(x.byPool, h.pool)
		}
	}
	delete(x.byKey, key)
}

func (p *poolUsers) add(h heldAddress) {
	p.users[h.addr] = append(p.users[h.addr], h.user)
	p.changed[h.addr] = struct{}{}
}

func (p *poolUsers) drop(h heldAddress) {
	users := p.users[h.addr]
	if at := slices.Index(users, h.user); at >= 0 {
		users = slices.Delete(users, at, at+1)
	}
	if p.users[h.addr] = users; len(users) == 0 {
		delete(p.users, h.addr)
	}
	p.changed[h.addr] = struct{}{}
}

// addresses are those that pods have. It costs what changed since it was asked
// last, and the set's ranges.
func (p *poolUsers) addresses() *netipx.IPSet {
	if len(p.changed) == 0 {
		return p.set
	}
	var build netipx.IPSetBuilder
	build.AddSet(p.set)
	for addr := range p.changed {
		if _, ok := p.users[addr]; ok {
			build.Add(addr)
		} else {
			build.Remove(addr)
		}
	}
	p.set = built(&build)
	clear(p.changed)
	return p.set
}

// Usage is how many addresses of a pool pods have, by SpiderEndpoints, by
// PoolLedgers that name a pod, and by the pool's status.allocatedIPs where no
// ledger is about them: where one is, that status is made of the others. What
// several name counts once.
func (c *Catalog) Usage(pool string) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if p := c.uses.byPool[pool]; p != nil {
		return int64(len(p.users))
	}
	return 0
}

// Taken are the addresses of a pool that Usage counts. The set is never nil.
func (c *Catalog) Taken(pool string) *netipx.IPSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.uses.byPool[pool]; p != nil {
		return p.addresses()
	}
	return &netipx.IPSet{}
}

// TakenBy is the pod "namespace/name" that has an address of a pool, as Taken
// knows it; empty if none does.
func (c *Catalog) TakenBy(pool string, addr netip.Addr) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if p := c.uses.byPool[pool]; p != nil && len(p.users[addr]) > 0 {
		return firstOf(p.users[addr]).pod
	}
	return ""
}

// firstOf is the user that counts of several, whatever came first.
func firstOf(users []user) user {
	return slices.MinFunc(users, func(a, b user) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), strings.Compare(a.pod, b.pod), strings.Compare(a.uid, b.uid))
	})
}

// ReviewUse refuses a status.allocatedIPs that cannot be read: pods may have
// addresses of the pool that neither Usage nor Used knows of.
func ReviewUse(obj *v2beta1.SpiderIPPool) Review {
	var review Review
	if _, err := allocationsOf(obj); err != nil {
		review.refuse(field.NewPath("status", "allocatedIPs"), Beginning(*obj.Status.AllocatedIPs, 64),
			`says which addresses pods have, and cannot be read: want JSON such as {"10.0.0.9":{"pod":"default/a"}}, or none (%s)`, Beginning(err.Error(), 256))
	}
	return review
}

// allocation is what status.allocatedIPs says of one address.
type allocation struct {
	Pod string `json:"pod"` // "namespace/name"
	UID string `json:"podUid,omitempty"`
}

// allocationsOf are the addresses that a pool's status names, with their pods.
func allocationsOf(obj *v2beta1.SpiderIPPool) (map[netip.Addr]user, error) {
	if obj.Status.AllocatedIPs == nil || *obj.Status.AllocatedIPs == "" {
		return nil, nil
	}
	var allocations map[string]allocation
	if err := json.Unmarshal([]byte(*obj.Status.AllocatedIPs), &allocations); err != nil {
		return nil, fmt.Errorf("status.allocatedIPs of pool %s: %w", obj.Name, err)
	}
	pods := make(map[netip.Addr]user, len(allocations))
	for text, a := range allocations {
		addr, err := parseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("status.allocatedIPs of pool %s: %w", obj.Name, err)
		}
		pods[addr] = user{usedByStatus, a.Pod, a.UID}
	}
	return pods, nil
}

// poolUses are the addresses that a pool's status names, none if it cannot be
// read.
func poolUses(obj *v2beta1.SpiderIPPool) uses {
	u := uses{stamp: stampOf(obj), key: useKey{kind: usedByStatus, name: obj.Name}}
	pods, err := allocationsOf(obj)
	if err != nil {
		return u
	}
	for _, addr := range slices.SortedFunc(maps.Keys(pods), netip.Addr.Compare) {
		u.held = append(u.held, heldAddress{obj.Name, addr, pods[addr]})
	}
	return u
}

// endpointUses are the addresses that a SpiderEndpoint names.
func endpointUses(obj *v2beta1.SpiderEndpoint) uses {
	u := uses{stamp: stampOf(obj), key: useKey{kind: usedByEndpoint, namespace: obj.Namespace, name: obj.Name}}
	pod := user{usedByEndpoint, obj.Namespace + "/" + obj.Name, obj.Status.Current.UID}
	hold := func(pool, text *string) {
		if pool == nil || text == nil || *pool == "" {
			return
		}
		if prefix, err := netip.ParsePrefix(*text); err == nil {
			u.held = append(u.held, heldAddress{*pool, prefix.Addr(), pod})
		}
	}
	for _, i := range obj.Status.Current.IPs {
		hold(i.IPv4Pool, i.IPv4)
		hold(i.IPv6Pool, i.IPv6)
	}
	return u
}
