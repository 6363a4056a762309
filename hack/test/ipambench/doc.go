// Package ipambench has benchmarks of how fast nodes get and give addresses on a real
// API server, and what that costs it: how many addresses a second, how many requests
// a pod, how many addresses a write of a ledger, for how long a pod waits, and whether
// any of that grows with a pool. Beside it, in the same run, it measures the other way
// to do it: one map in one object, written by compare-and-swap.
//
// Both sync their disks. The other way, a pod waits until its SpiderEndpoint is
// written, and here it does not; so there are figures until addresses are assigned
// and until they are published, and the latter stand beside the other way's. It is
// measured with at most as many pods at once as ten nodes start: with those of 100
// nodes it would hardly end.
//
// It needs RAILHEAD_API=1, as hack/test/api does, and no root. What is right,
// hack/test/api tests.
package ipambench
