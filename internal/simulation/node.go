package simulation

import (
	"os"
	"sync"

	"railhead/internal/kernel/devlink"
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
	"railhead/internal/kernel/uevent"
)

// FS reads the files of the node. Those of a real node are its own, but for
// sysfs.
func (m *machine) FS() sysfs.FS {
	if m.ground != nil {
		return m.ground.node.FS().WithSys(m.host.tree.path("sys"))
	}
	return sysfs.New(m.host.tree.root)
}

// Own is the host's namespace.
func (m *machine) Own() node.NetNS { return &handle{space: m.host, close: func() {}} }

// Open opens the namespace of a pod, and keeps it alive.
func (m *machine) Open(path string) (node.NetNS, error) {
	if m.ground != nil {
		ns, err := m.ground.node.Open(path)
		if err != nil {
			return nil, err
		}
		return realPod{ns, m.host}, nil
	}
	id, err := netns.Stat(path)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.find(id)
	if !ok {
		return nil, errGone(path)
	}
	n.handles++
	return &handle{space: n, close: sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		n.handles--
	})}, nil
}

// Subscribe hears of links and addresses of the host.
func (m *machine) Subscribe(groups ...rtnl.Group) (*rtnl.Subscription, error) {
	return m.host.kernel.Subscribe(groups...), nil
}

// Uevents hears of devices of the host.
func (m *machine) Uevents() (*uevent.Listener, error) { return m.host.kernel.Uevents(), nil }

// Monitor hears of RDMA devices of the host.
func (m *machine) Monitor() (*rdmanl.Monitor, error) { return m.host.kernel.Monitor() }

// handle is an open namespace.
type handle struct {
	space *namespace
	close func()
}

// ID is that of the file which stands for the namespace.
func (h *handle) ID() netns.ID { return h.space.id }

// RDMA, Links, Ethtool and Devlink open clients of the namespace.
func (h *handle) RDMA() (*rdmanl.Client, error)     { return h.space.kernel.RDMA(), nil }
func (h *handle) Links() (*rtnl.Client, error)      { return h.space.kernel.Links(), nil }
func (h *handle) Ethtool() (*ethtool.Client, error) { return h.space.kernel.Ethtool() }
func (h *handle) Devlink() (*devlink.Client, error) { return h.space.kernel.Devlink() }

// SysFS opens the namespace's view of sysfs.
func (h *handle) SysFS() (*os.File, error) { return h.space.sysfs() }

// Close lets the namespace go.
func (h *handle) Close() error {
	h.close()
	return nil
}

// realPod is the open namespace of a pod of a real node, which sees the RDMA
// devices of the host.
type realPod struct {
	node.NetNS

	host *namespace
}

// RDMA opens a client of the namespace.
func (p realPod) RDMA() (*rdmanl.Client, error) { return p.host.kernel.RDMA(), nil }

// SysFS opens the view of sysfs that has RDMA devices, and no netdevs of the pod.
func (p realPod) SysFS() (*os.File, error) { return p.host.sysfs() }
