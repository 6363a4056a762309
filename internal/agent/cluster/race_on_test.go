//go:build race

package cluster

// isRace tells that the race detector, which takes memory too, is at work.
const isRace = true
