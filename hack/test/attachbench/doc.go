// Package attachbench has benchmarks of what it takes to give a pod eight rails and
// to take them away.
//
// Rails alone, with all that goes with them (planning, a record on the disk,
// gateways asked on the wire), stand beside the bare netlink calls that nobody can
// do without. Whole pods, from libcni's call of railhead-cni to its answer, stand
// beside plugins of the CNI project run by libcni, and beside Multus with the same
// plugins, with eth0 by the same executed plugin on both sides. Both sides have the
// same features, which each benchmark looks at first.
//
// Multus is in the form with a daemon, the cheaper one; logs and a chroot, which it
// has by default, are off, and its API server is one in this process that answers at
// once. Beside Spiderpool and its coordinator nothing is measured: their module
// could not be had.
//
// The test program runs in network and mount namespaces of its own, with veth pairs
// for rails, and takes no hardware and no cluster. The plugins are built as those of
// clusters are, with RAILHEAD_API=1 or RAILHEAD_NIGHTLY=1, and Multus with the
// latter, which takes minutes the first time.
package attachbench
