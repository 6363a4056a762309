package overview

import (
	"fmt"
	"slices"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// ledgerBooks are the ledgers of a cluster, parsed.
type ledgerBooks struct {
	byPool map[string][]*ipam.Ledger
	// broken are the ledgers that cannot be understood, by pool, and of these the
	// parts that can be.
	broken  map[string]bool
	parts   []netipx.IPRange
	missing bool // ledgers, of whichever pools, were not read or had to be left out
}

// ledgersOf parses ledgers. The errors name those that cannot be understood, and
// what is not known because of that.
func ledgersOf(o *Objects) (ledgerBooks, []error) {
	b := ledgerBooks{byPool: map[string][]*ipam.Ledger{}, broken: map[string]bool{}, missing: o.Ledgers == nil || o.LedgersLeftOut}
	var errs []error
	for _, obj := range o.Ledgers {
		ledger, err := ipam.LedgerOf(obj)
		if err == nil {
			b.byPool[obj.Spec.Pool] = append(b.byPool[obj.Spec.Pool], ledger)
			continue
		}
		errs = append(errs, fmt.Errorf("%w; who has which addresses of pool %s is not known", err, obj.Spec.Pool))
		b.broken[obj.Spec.Pool] = true
		if part, err := ipam.ParseRange(obj.Spec.Part); err == nil {
			b.parts = append(b.parts, part)
		}
	}
	return b, errs
}

// isWhole says whether all is known that ledgers say of a pool.
func (b *ledgerBooks) isWhole(pool string) bool { return !b.missing && !b.broken[pool] }

// knows says whether it is known who holds the addresses of a pool, by its own
// ledgers and by those of others that are about them, too.
func (b *ledgerBooks) knows(pool string, addresses *netipx.IPSet) bool {
	return b.isWhole(pool) && !slices.ContainsFunc(b.parts, addresses.OverlapsRange)
}

// at is the ledger of a pool that is about an address.
func (b *ledgerBooks) at(u use) *ipam.Ledger {
	for _, l := range b.byPool[u.pool] {
		if l.Part.Contains(u.addr) {
			return l
		}
	}
	return nil
}

// closed are the addresses that ledgers have a pool not grant, beside those that
// its own hold: what other pools' ledgers hold or keep for themselves, and all of
// a ledger that is made again.
func (b *ledgerBooks) closed(pool string, addresses *netipx.IPSet) *netipx.IPSet {
	var ranges []netipx.IPRange
	for name, list := range b.byPool {
		for _, l := range list {
			switch {
			case !addresses.OverlapsRange(l.Part):
			case l.Meta.Annotations[v1alpha1.AnnotationRebuilding] != "":
				ranges = append(ranges, l.Part)
			case name != pool:
				ranges = append(append(ranges, l.HeldList()...), l.Gives()...)
			}
		}
	}
	return ipam.SetOf(ipam.Merged(ranges))
}
