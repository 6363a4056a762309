// Package driver puts a cluster together: it builds the programs and images,
// starts a machine for the control plane and one for each node, connects them,
// and waits until the nodes are ready. A cluster lives as long as the process
// that made it: its machines end when that does, whatever ends it.
//
// It needs root. It changes nothing of the host but its own directory and
// control groups: no link, no mount, no setting.
package driver
