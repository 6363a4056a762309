package overview

import (
	"context"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// Addresses reads what [Addresses] needs. The error is why the ledgers could not
// be read; what else could not is in Problems.
func (r *Reader) Addresses(ctx context.Context) (*Objects, error) {
	o := &Objects{}
	if err := r.ledgers(ctx, o); err != nil {
		return nil, err
	}
	o.Leases = optional[v1alpha1.AddressLease](ctx, r, o, leases)
	o.Endpoints = optional[v2beta1.SpiderEndpoint](ctx, r, o, endpoints)
	o.Pools = optional[v2beta1.SpiderIPPool](ctx, r, o, ippools)
	return o, nil
}

// ledgers reads the ledgers.
func (r *Reader) ledgers(ctx context.Context, o *Objects) error {
	before := len(o.Problems)
	var err error
	o.Ledgers, err = list[v1alpha1.PoolLedger](ctx, r, o, ledgers)
	o.LedgersLeftOut = len(o.Problems) > before
	return err
}
