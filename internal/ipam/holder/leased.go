package holder

import (
	"errors"
	"fmt"
	"net/netip"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// leased is a pool of a status, and its grants by address.
type leased struct {
	pool   v1alpha1.LeasedPool
	grants map[netip.Addr]*v1alpha1.Grant
	revoke *netipx.IPSet
	// partial says that some grant makes no sense: what is not in grants may be
	// granted all the same.
	partial bool
}

// leasedOf reads a status. The error names all of it that makes no sense; the
// rest is there.
func leasedOf(now *status) (map[string]leased, error) {
	pools := make(map[string]leased, len(now.Pools))
	var errs []error
	for i := range now.Pools {
		pool := &now.Pools[i]
		of, err := readPool(pool)
		if _, twice := pools[pool.Pool]; twice { // which one counts nobody knows
			of = leased{partial: true}
			err = errors.New("it is there twice")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("status.pools[%d] of pool %q: %w", i, pool.Pool, err))
		}
		pools[pool.Pool] = of
	}
	return pools, errors.Join(errs...)
}

// grantedMost is more addresses than a node has of a pool.
const grantedMost = 1 << 16

// readPool reads one pool.
func readPool(pool *v1alpha1.LeasedPool) (leased, error) {
	of := leased{pool: *pool, grants: map[netip.Addr]*v1alpha1.Grant{}}
	var errs []error
	for i := range pool.Grants {
		for _, text := range pool.Grants[i].Addresses {
			if err := of.add(&pool.Grants[i], text); err != nil {
				of.partial = true
				errs = append(errs, fmt.Errorf("grants[%d]: %w", i, err))
			}
		}
	}
	revoke := &netipx.IPSetBuilder{}
	for _, text := range pool.Revoke {
		r, err := ipam.ParseRange(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("revoke: %w", err))
			continue
		}
		revoke.AddRange(r)
	}
	var err error
	if of.revoke, err = revoke.IPSet(); err != nil {
		errs = append(errs, fmt.Errorf("revoke: %w", err))
	}
	return of, errors.Join(errs...)
}

// add takes a range of a grant. Of two grants of an address the newer one counts.
func (l *leased) add(g *v1alpha1.Grant, text string) error {
	addresses, err := expand(text, grantedMost-len(l.grants))
	for _, addr := range addresses {
		if had := l.grants[addr]; had == nil || had.Epoch < g.Epoch {
			l.grants[addr] = g
		}
	}
	return err
}

// expand lists the addresses of a range, which are no more than most.
func expand(text string, most int) ([]netip.Addr, error) {
	r, err := ipam.ParseRange(text)
	if err != nil {
		return nil, err
	}
	var all []netip.Addr
	for addr := r.From(); ; addr = addr.Next() {
		if len(all) == most {
			return nil, fmt.Errorf("%s has more addresses than the %d that a node may have of a pool", text, grantedMost)
		}
		if all = append(all, addr); addr == r.To() {
			return all, nil
		}
	}
}
