package policy

import (
	"encoding/json"
	"fmt"
	"testing"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/versus"
)

// manyPools is a Catalog with n pools of 16 subnets, each of 8 addresses.
func manyPools(n int) *Catalog {
	c := NewCatalog()
	for i := range n {
		c.Put(benchPool(i))
	}
	return c
}

// benchPool is the pool of a number.
func benchPool(i int) *v2beta1.SpiderIPPool {
	subnet, block := i%16, i/16*8
	return poolWith(fmt.Sprintf("pool-%d", i), fmt.Sprintf("10.%d.0.0/16", subnet),
		[]string{fmt.Sprintf("10.%d.%d.%d-10.%[1]d.%[2]d.%[4]d", subnet, block/256, block%256, block%256+7)},
		func(p *v2beta1.SpiderIPPool) { p.Spec.Gateway = new(fmt.Sprintf("10.%d.255.254", subnet)) })
}

// review reviews a new pool, which is accepted.
func review(c *Catalog, pool *v2beta1.SpiderIPPool) func() error {
	return func() error {
		if r := c.Review(pool, nil); !r.OK() {
			return r.Errors.ToAggregate()
		}
		return nil
	}
}

// BenchmarkReviewSize is a pool of a whole /64 beside one of a /30.
func BenchmarkReviewSize(b *testing.B) {
	c := manyPools(1000)
	large := poolWith("large", "fd00::/64", []string{"fd00::2-fd00::ffff:ffff:ffff:ffff"})
	small := poolWith("small", "fd00::/126", []string{"fd00::2-fd00::3"})
	versus.Floor(b, review(c, large), review(c, small))
}

// BenchmarkReviewPools is a pool beside many others, and beside one.
func BenchmarkReviewPools(b *testing.B) {
	one := review(manyPools(1), benchPool(60000))
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			versus.Floor(b, review(manyPools(n), benchPool(60000)), one)
		})
	}
}

// BenchmarkPut is a change of one pool among many, and among one.
func BenchmarkPut(b *testing.B) {
	put := func(c *Catalog) func() error {
		pool := benchPool(0)
		return func() error { c.Put(pool); return nil }
	}
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { versus.Floor(b, put(manyPools(n)), put(manyPools(1))) })
	}
}

// BenchmarkFill is a Catalog of 10,000 pools, as a controller begins.
func BenchmarkFill(b *testing.B) {
	for b.Loop() {
		manyPools(10000)
	}
}

// BenchmarkPutStatus is a change of the counts of a pool that Spiderpool gave
// thousands of addresses of, and to read these alone, which pods do not wait for.
func BenchmarkPutStatus(b *testing.B) {
	const inUse = 5000
	records := map[string]map[string]string{}
	for i := range inUse {
		records[fmt.Sprintf("10.0.%d.%d", i/256, i%256)] = map[string]string{"pod": fmt.Sprintf("ns/pod-%d", i), "podUid": "u"}
	}
	text, err := json.Marshal(records)
	if err != nil {
		b.Fatal(err)
	}
	pool := poolWith("a", "10.0.0.0/16", []string{"10.0.0.0-10.0.255.254"}, func(p *v2beta1.SpiderIPPool) { p.Status.AllocatedIPs = new(string(text)) })
	pool.Generation = 1
	c := catalogOf(pool)
	versus.Floor(b, func() error { c.Put(pool); return nil }, func() error { poolUses(pool); return nil })
}
