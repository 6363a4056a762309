// Package address has the leading controller give nodes their addresses: it
// gathers what internal/ipam/granter decides by (leases, pools, nodes, and who
// is gone for good), runs its rounds, writes what it decided, and ends leases
// and SpiderEndpoints that nobody has any more. It decides no grant itself.
package address
