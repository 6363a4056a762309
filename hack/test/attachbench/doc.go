// Package attachbench measures what it takes to give a pod eight rails and to
// take them away: ours, with all that it does beside (planning, a record on the
// disk, gateways asked on the wire), against the bare netlink calls that nobody
// can do without, and against plugins of the CNI project run one after the other,
// by libcni alone and by Multus.
//
// What is held against each other has the same features: addresses alone, with
// policy routes, and with gateways that were asked, which the plugins cannot do.
// Both sides take turns in one run. It runs as root in network namespaces that it
// made, with veth pairs for rails, and takes no hardware and no cluster.
//
// Beside Multus, a whole pod is measured from libcni's call of one plugin,
// railhead-cni or that of Multus, to its answer, with eth0 by the same executed
// plugins on both sides. Multus is in the form with a daemon, the cheaper one; logs
// and a chroot, which it has by default, are off, and its API server is one in this
// process that answers at once. Beside Spiderpool and its coordinator nothing is
// measured: their module could not be had.
//
// It prints figures, and judges them by the budgets of the design. It is no test
// of what is right, but for that both sides have done the same.
package attachbench
