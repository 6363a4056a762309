// Package simulation plays a node with RDMA cards, pods and an API server after
// a scenario, so that everything above the kernel can be run without hardware.
//
// What a scenario describes is served as a real node would serve it: files of
// sysfs and proc below a directory, netlink through a [node.Node], Kubernetes
// through a [rest.Config] and the kubelet's pod-resources socket. All of it is a
// function of the scenario and of the time since its start, so that the same
// moment of the same scenario is always the same.
//
// A scenario can also be about RDMA alone, on a node that is there ([StartOn]):
// its cards stand on netdevs of that node, and processes of its pods use them.
// Files of RDMA and netlink are simulated then, and what netdevs are, which
// processes there are, the kubelet and Kubernetes are those of the node. It looks
// at links and processes and no further: whose a process is, is for others to
// find out.
//
// It changes nothing outside its directory, and nothing but the scenario, and
// that node, changes it.
package simulation
