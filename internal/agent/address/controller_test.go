package address

import (
	"encoding/json"
	"fmt"
	"slices"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
	"railhead/internal/kubetest"
)

// controller grants addresses as the controller does, of one node's lease and
// without a ledger.
type controller struct {
	free     map[string][]string // of each pool, in order
	reserve  int64
	isPaused bool
	returned int // addresses that were ever given back
	epoch    int64
	grants   map[string][]v1alpha1.Grant // of each pool, one address each
}

// newController returns a controller of pools of addresses 10.0.<pool>.1 and so on.
func newController(reserve int64, sizes ...int) *controller {
	c := &controller{free: map[string][]string{}, reserve: reserve, grants: map[string][]v1alpha1.Grant{}}
	for i, size := range sizes {
		name := fmt.Sprintf("rail%d", i)
		for host := range size {
			c.free[name] = append(c.free[name], fmt.Sprintf("10.0.%d.%d", i, host+1))
		}
	}
	return c
}

// answer writes the status of a lease. It is called with the API server locked.
func (c *controller) answer(o object) {
	if c.isPaused {
		return
	}
	var lease v1alpha1.AddressLease
	if err := json.Unmarshal([]byte(kubetest.Text(o)), &lease); err != nil {
		panic(err)
	}
	c.takeBack(lease.Spec.Returns)
	lease.Status.ObservedGeneration, lease.Status.NodeUID = lease.Generation, lease.Spec.NodeUID
	lease.Status.Pools = nil
	for _, w := range lease.Spec.Wants {
		p := v1alpha1.LeasedPool{Pool: w.Pool, Reserve: c.reserve}
		c.fill(w.Pool, "", w.Addresses+c.reserve)
		if have := c.held(w.Pool, ""); have < w.Addresses {
			p.Short = fmt.Sprintf("all addresses are held, %d lack", w.Addresses-have)
		}
		lease.Status.Pools = append(lease.Status.Pools, p)
	}
	for _, pin := range lease.Spec.Pins {
		for _, w := range pin.Wants {
			c.fill(w.Pool, pin.Identity, w.Addresses)
			if !slices.ContainsFunc(lease.Status.Pools, func(p v1alpha1.LeasedPool) bool { return p.Pool == w.Pool }) {
				lease.Status.Pools = append(lease.Status.Pools, v1alpha1.LeasedPool{Pool: w.Pool})
			}
		}
	}
	for pool, grants := range c.grants {
		if len(grants) > 0 && !slices.ContainsFunc(lease.Status.Pools, func(p v1alpha1.LeasedPool) bool { return p.Pool == pool }) {
			lease.Status.Pools = append(lease.Status.Pools, v1alpha1.LeasedPool{Pool: pool})
		}
	}
	for i := range lease.Status.Pools {
		p := &lease.Status.Pools[i]
		p.Grants = slices.Clone(c.grants[p.Pool])
	}
	o["status"] = kubetest.ObjectOf(lease.Status)
}

// fill grants addresses until there are as many.
func (c *controller) fill(pool, identity string, want int64) {
	for c.held(pool, identity) < want && len(c.free[pool]) > 0 {
		c.epoch++
		c.grants[pool] = append(c.grants[pool], v1alpha1.Grant{Epoch: c.epoch, Addresses: c.free[pool][:1:1], Identity: identity})
		c.free[pool] = c.free[pool][1:]
	}
}

func (c *controller) held(pool, identity string) (n int64) {
	for _, g := range c.grants[pool] {
		if g.Identity == identity {
			n++
		}
	}
	return n
}

// takeBack takes what was returned under the epoch of its grant.
func (c *controller) takeBack(returns []v1alpha1.Return) {
	for _, r := range returns {
		for _, address := range eachOf(r.Addresses) {
			i := slices.IndexFunc(c.grants[r.Pool], func(g v1alpha1.Grant) bool { return g.Addresses[0] == address && g.Epoch == r.Epoch })
			if i >= 0 {
				c.grants[r.Pool] = slices.Delete(c.grants[r.Pool], i, i+1)
				c.returned++
				c.free[r.Pool] = append(c.free[r.Pool], address)
			}
		}
	}
}

// eachOf lists the addresses of ranges.
func eachOf(ranges []string) (list []string) {
	for _, text := range ranges {
		r, err := ipam.ParseRange(text)
		if err != nil {
			panic(err)
		}
		for addr := r.From(); addr.Compare(r.To()) <= 0; addr = addr.Next() {
			list = append(list, addr.String())
		}
	}
	return list
}
