package cniserver

import (
	"net/netip"

	"github.com/google/go-cmp/cmp"
)

// comparable has go-cmp compare addresses.
func comparable() []cmp.Option {
	return []cmp.Option{
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	}
}
