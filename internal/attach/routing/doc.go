// Package routing says how a pod with several interfaces routes: the addresses,
// routes, rules, neighbours and settings of all of them, computed at once from
// plain values. It asks no kernel and changes nothing, so that the same answer
// serves attaching, checking, explaining and undoing.
//
// # Numbers
//
// In the pod:
//
//	table 100 + rail   an interface's own: its subnets, its default, what goes over the node
//	table 99           that of the default network's interface (eth0)
//	table 98           answers over veth0 to what came in by it
//	rule 1000          fwmark 1 lookup 98, as Spiderpool has it
//	rule 32600         from eth0's addresses lookup 99
//	rule 32758 + rail  from a rail's addresses lookup 100 + rail
//
// Rules without a priority get 32765, 32764 and so on from the kernel, in the
// order in which interfaces happen to come. Ours name theirs: eight rails fill
// the eight places before the main table's 32766, in the order in which
// spec/003 prints them, whoever comes first. Rails 8 to 15 have the eight
// places before those, and so on.
//
// On the node:
//
//	table 500   routes to pods' addresses (hostRuleTable)
//	rule 1000   from all lookup 500; one for all pods, it stays
//
// # Main table of the pod
//
// The default route is that of the default network's interface, or of the one
// that podDefaultRouteNIC or the pod's annotation names; never of two. Subnets
// are in it with their source address, so that sockets that are bound to none
// leave by the interface on the subnet. Where two interfaces are on one subnet,
// or have the same route, each route has a metric of its own and the lowest
// rail's wins.
//
// Source: spec/003 (ip rule, ip route), coordinator of Spiderpool 1.2.
package routing
