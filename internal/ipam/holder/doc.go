// Package holder is one node's half of address leases: what the node was
// granted, which pod has which of it, and what it gives back. Everything that
// must outlive the process is in a journal before anybody is told of it.
//
// It starts no goroutines, sets no timers and talks to the API server only
// within Sync. The controller's half is package granter.
package holder
