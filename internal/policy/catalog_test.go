package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"

	"railhead/api/spiderpool/v2beta1"
)

func TestPools(t *testing.T) {
	t.Parallel()
	c := catalogOf(
		poolWith("c", "10.0.0.0/24", nil), poolWith("a", "10.0.0.0/24", nil),
		poolWith("broken", "10.0.0.0/24", []string{"x"}), poolWith("b", "10.1.0.0/24", nil),
	)
	names := func(pools []Pool) []string {
		var names []string
		for _, p := range pools {
			names = append(names, p.Name)
		}
		return names
	}
	before := c.Pools()
	if diff := cmp.Diff([]string{"a", "b", "c"}, names(before)); diff != "" {
		t.Errorf("Pools (-want +got):\n%s", diff)
	}
	c.Remove(poolWith("a", "", nil))
	c.Put(poolWith("broken", "10.0.0.0/24", nil))
	if diff := cmp.Diff([]string{"b", "broken", "c"}, names(c.Pools())); diff != "" {
		t.Errorf("Pools after changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names(before)); diff != "" {
		t.Errorf("the answer before has changed (-want +got):\n%s", diff)
	}
	if _, ok := c.Pool("a"); ok {
		t.Error("a removed pool is answered")
	}
}

// TestPutAgain parses nothing where nothing changed, and takes over what did.
func TestPutAgain(t *testing.T) {
	t.Parallel()
	versioned := func(version string, generation int64, ip string) *v2beta1.SpiderIPPool {
		return poolWith("a", "10.0.0.0/24", []string{ip}, func(p *v2beta1.SpiderIPPool) {
			p.ResourceVersion, p.Generation = version, generation
			p.Status.AllocatedIPs = new(fmt.Sprintf(`{%q:{}}`, ip))
		})
	}
	c := NewCatalog()
	for _, tt := range []struct {
		name string
		pool *v2beta1.SpiderIPPool
		want string
		used bool
	}{
		{"new", versioned("1", 1, "10.0.0.1"), "10.0.0.1", true},
		{"the same version", versioned("1", 1, "10.0.0.2"), "10.0.0.1", false},
		{"another status", versioned("2", 1, "10.0.0.2"), "10.0.0.1", true},
		{"another spec", versioned("3", 2, "10.0.0.3"), "10.0.0.3", true},
	} {
		c.Put(tt.pool)
		pool, _ := c.Pool("a")
		if got := FormatRanges(pool.Addresses); got[0] != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if got := c.Used("a").Contains(netip.MustParseAddr(tt.pool.Spec.IPs[0])); got != tt.used {
			t.Errorf("%s: %s in use: %v, want %v", tt.name, tt.pool.Spec.IPs[0], got, tt.used)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	pool := poolWith("a", "10.0.0.0/24", []string{"10.0.0.1-10.0.0.9"}, func(p *v2beta1.SpiderIPPool) {
		p.Status.AllocatedIPs = new(`{"10.0.0.1":{"pod":"ns/one","podUid":"u"},"10.0.0.2":{"pod":"ns/two"}}`)
	})
	c := catalogOf(pool, endpointWith("two", "a", "10.0.0.2/24"), endpointWith("three", "a", "10.0.0.3/24"),
		endpointWith("bad", "a", "10.0.0.x"), endpointWith("other", "b", "10.0.0.4/24"))
	expect := func(when, pool string, want int64) {
		t.Helper()
		if got := c.Usage(pool); got != want {
			t.Errorf("%s: %d addresses of pool %s in use, want %d", when, got, pool, want)
		}
	}
	expect("at first", "a", 3)
	expect("at first", "b", 1)
	expect("at first", "none", 0)
	c.Remove(endpointWith("two", "", ""))
	expect("two without endpoint", "a", 3)
	c.Remove(endpointWith("three", "", ""))
	expect("without three", "a", 2)
	c.Put(endpointWith("other", "a", "10.0.0.4/24"))
	expect("other moved", "a", 3)
	expect("other moved", "b", 0)
	c.Remove(pool)
	expect("without the pool", "a", 1)
}

// TestSpans holds the index against a list, with ranges that overlap and that
// come and go.
func TestSpans(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	addr := func() netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(random.IntN(256))}) }
	pick := func() netipx.IPRange {
		a, b := addr(), addr()
		if b.Less(a) {
			a, b = b, a
		}
		if random.IntN(2) == 0 {
			b = a
		}
		return netipx.IPRangeFrom(a, b)
	}
	var index spans[int]
	list := map[int]netipx.IPRange{}
	for owner := range 500 {
		if gone, ok := list[owner-40]; ok && random.IntN(3) > 0 {
			index.drop(owner-40, []netipx.IPRange{gone})
			delete(list, owner-40)
		}
		list[owner] = pick()
		index.add(owner, []netipx.IPRange{list[owner]})
		asked := pick()
		var got, want []int
		index.overlapping(asked, func(s span[int]) bool {
			got = append(got, s.owner)
			return true
		})
		for owner, r := range list {
			if r.Overlaps(asked) {
				want = append(want, owner)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("after %d changes, overlapping %s (-want +got):\n%s", owner, asked, diff)
		}
	}
}

// TestConcurrently is for the race detector, and for locks that wait for one
// another.
func TestConcurrently(t *testing.T) {
	t.Parallel()
	c := NewCatalog()
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := range 200 {
				name := fmt.Sprintf("p%d", i%10)
				pool := poolWith(name, "10.0.0.0/16", []string{fmt.Sprintf("10.0.%d.%d", worker, i)})
				c.Default(pool)
				c.Review(pool, nil)
				c.Put(pool)
				c.Put(endpointWith(name, name, fmt.Sprintf("10.0.%d.%d/16", worker, i)))
				c.Put(subnetWith(name, "10.1.0.0/16", nil))
				c.Put(reservedWith(name, "10.0.0.1"))
				c.SetConfig(DefaultConfig())
				for _, p := range c.Pools() {
					c.Usage(p.Name)
				}
				c.Pool(name)
				c.Reserved(4)
				c.Subnets()
				c.ReviewDelete(pool)
				c.Remove(pool)
			}
		})
	}
	wait.Wait()
	if got := len(c.Pools()); got > 10 {
		t.Errorf("%d pools, want at most 10", got)
	}
}
