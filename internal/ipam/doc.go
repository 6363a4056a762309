// Package ipam is the arithmetic of addresses: pools, the parts they fall
// into, and the books of who holds what. It reads nothing, knows no time and
// starts nothing. All of it works on ranges: a /64 costs what a /30 costs.
package ipam
