package ipambench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"railhead/internal/ipam/holder"
)

// size is a size of pools, with subnets of it.
type size struct {
	name    string
	subnets []string // one a round
}

// sizes are pools from hundreds of addresses to more than a number of 64 bits can count.
func sizes(rounds int) []size {
	var all []size
	for _, s := range []struct {
		name, format string
		first, step  int
	}{
		{"/24", "192.168.%d.0/24", 0, 1},
		{"/20", "100.64.%d.0/20", 0, 16},
		{"/16", "172.%d.0.0/16", 16, 1},
		{"/12", "64.%d.0.0/12", 0, 16},
		{"/8", "%d.0.0.0/8", 20, 1},
		{"/64", "fd00:0:0:%d::/64", 0, 1},
	} {
		one := size{name: s.name}
		for round := range rounds {
			one.subnets = append(one.subnets, fmt.Sprintf(s.format, s.first+round*s.step))
		}
		all = append(all, one)
	}
	return all
}

// sized is what pods cost out of pools of one size.
type sized struct {
	// cpu is seconds an address, of all agents and the controller beyond what they
	// use while nothing happens: the least, since whatever else is done only adds.
	cpu float64
	// bytes an address until it is assigned: the middle
	agentBytes, controllerBytes float64
}

// flat starts pods with one address each out of pools of several sizes, in turn,
// which nobody had an address of before.
func (f *fleet) flat(b *testing.B, all []size, agents, each int) []sized {
	b.Helper()
	nodes := f.agents[:agents]
	idle := idleCPU(b)
	found := make([][]sized, len(all))
	for round := range all[0].subnets {
		for k := range all {
			i := (k + round) % len(all) // each is first once, and each is behind another one
			s, name := all[i], fmt.Sprintf("flat%d-%d", i, round)
			ref := f.pool(b, name, s.subnets[round])
			got := f.start(b, nodes, f.pods(b, name, nodes, each, []holder.PoolRef{ref}))
			n := float64(got.addresses())
			found[i] = append(found[i], sized{
				cpu:        (got.cpu.Seconds() - idle*got.took.Seconds()) / n,
				agentBytes: float64(got.agentSide.Bytes) / n, controllerBytes: float64(got.controller.Bytes) / n,
			})
			f.end(b, nodes, got)
			f.awaitEndpoints(b, 0)
		}
	}
	result := make([]sized, len(all))
	for i := range found {
		middle := len(found[i]) / 2
		result[i] = sized{
			cpu:             inOrder(found[i], func(s sized) float64 { return s.cpu })[0],
			agentBytes:      inOrder(found[i], func(s sized) float64 { return s.agentBytes })[middle],
			controllerBytes: inOrder(found[i], func(s sized) float64 { return s.controllerBytes })[middle],
		}
	}
	return result
}

// idleCPU is what this process uses while nothing happens: CPU time by time.
func idleCPU(b *testing.B) float64 {
	b.Helper()
	before, began := cpuTime(b), time.Now()
	<-time.After(3 * time.Second)
	return (cpuTime(b) - before).Seconds() / time.Since(began).Seconds()
}

// inOrder are figures of some rounds, the least first.
func inOrder(all []sized, figure func(sized) float64) []float64 {
	var values []float64
	for _, s := range all {
		values = append(values, figure(s))
	}
	slices.Sort(values)
	return values
}
