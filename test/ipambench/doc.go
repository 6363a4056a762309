// Package ipambench measures how fast nodes get and give addresses on a real API
// server, and what that costs it: how many addresses a second, how many requests
// and bytes a pod, how many writes a ledger, for how long a pod waits, and
// whether any of that grows with a pool. Beside it, in the same run, it measures
// the other way to do it: one map in one object, written by compare-and-swap.
//
// It prints figures, and judges them by the budgets of the design. It is no test
// of what is right: test/api is.
package ipambench
