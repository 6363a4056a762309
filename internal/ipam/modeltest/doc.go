// Package modeltest answers whether the allocator ever gives an address twice
// or loses one: it drives the real code of granter, holder and journal through
// random interleavings over a simulated API server, simulated disks and a
// simulated wire, in one goroutine at a time, so that a seed is a whole run and
// a failure replays. It holds tests only, and never talks to anything real.
package modeltest
