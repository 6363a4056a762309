// Package inventory knows every RDMA device of a node: what it is, where it
// sits, and what hangs on it.
//
// It reads sysfs and netlink side by side ([Reader]), joins them into one
// immutable picture ([Join], which is pure), and keeps that picture up to date
// from the kernel's events ([Watcher]). It reads identity and state, never
// traffic counters; it changes nothing, and knows nothing of Kubernetes.
package inventory
