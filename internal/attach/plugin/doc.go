// Package plugin reads a network's chain of CNI plugins as what its interface is
// to be: the configurations of the plugins that the agent does itself, fused into
// one [attach.Interface], and which plugins of others run behind them. It reads
// no API, no file and no kernel.
//
// What a plugin does not know is refused, where the reference plugins pass over
// it: a rail with a setting that silently has no effect is worse than a pod that
// says why it does not start.
//
// Source: documentation of the plugins macvlan, ipvlan, vlan, host-device and
// tuning of containernetworking; ifacer and coordinator of Spiderpool 1.2.
package plugin
