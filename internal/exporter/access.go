package exporter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"railhead/internal/counters"
	"railhead/internal/inventory"
	"railhead/internal/kernel/devlink"
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// sockets are what devices are read with. Those of our own network namespace
// are opened at their first use and kept, one set a card: calls on one socket
// wait for each other, so a card that blocks would keep the others waiting. It
// is not safe for concurrent use.
type sockets struct {
	node node.Node
	own  *namespace

	samples []counters.Sample // memory for those of the device that is read
}

func newSockets(n node.Node) *sockets { return &sockets{node: n} }

func (s *sockets) close() {
	if s.own != nil {
		s.own.close()
		s.own = nil
	}
}

// needs are the sources that a reading asks, under the names of errors in
// reading them. What is opened in a pod is opened for one reading, which costs
// more than many a question, so no more is opened than it needs.
type needs map[string]bool

// reach opens what is needed to read a device: in our namespace, and in those
// where the device and its netdev are. Done closes all that is not kept. What
// could not be opened is absent from access, and among the errors unless it is
// what the kernel lacks. Access is zero where the device cannot be reached.
func (s *sockets) reach(d *inventory.Device, need needs) (access counters.Access, done func(), err error) {
	if s.own == nil {
		s.own = &namespace{ns: s.node.Own(), isOwn: true}
	}
	rdma, netdev := s.own, s.own
	done = func() {}
	if where := d.RDMA.NetNS; where != nil {
		if rdma, err = s.enter(where); err != nil {
			return access, done, err
		}
		done = rdma.close
	}
	switch where := netdevNetNS(d); {
	case where == nil:
	case d.RDMA.NetNS != nil && where.ID == d.RDMA.NetNS.ID:
		netdev = rdma
	default:
		outer := done
		if netdev, err = s.enter(where); err != nil {
			outer()
			return access, func() {}, err
		}
		done = func() { netdev.close(); outer() }
	}
	err = errors.Join(rdma.openRDMA(need), netdev.openNetdev(need), s.own.openDevlink(need))
	access = counters.Access{
		RDMA:    rdma.rdma,
		Ethtool: netdev.ethtool,
		Links:   netdev.links,
		Devlink: s.own.devlink, // which does not follow a function into a pod
		FS:      rdma.files(s.node.FS()),
	}
	return access, done, err
}

// enter opens a namespace that the inventory found. The error is that of a file
// that does not exist where another namespace has taken its place.
func (s *sockets) enter(where *inventory.NetNS) (*namespace, error) {
	ns, err := s.node.Open(where.Path)
	if err != nil {
		return nil, err
	}
	if ns.ID() != where.ID {
		_ = ns.Close()
		return nil, fmt.Errorf("%s: it became another namespace: %w", where.Path, fs.ErrNotExist)
	}
	return &namespace{ns: ns}, nil
}

// netdevNetNS is where the netdev of a device is; nil for our namespace.
func netdevNetNS(d *inventory.Device) *inventory.NetNS {
	if len(d.Netdevs) == 0 {
		return d.RDMA.NetNS
	}
	return d.Netdevs[0].NetNS
}

// namespace is a network namespace with its clients. What the kernel lacks or
// forbids is nil there.
type namespace struct {
	ns      node.NetNS
	isOwn   bool
	rdma    *rdmanl.Client
	links   *rtnl.Client
	ethtool *ethtool.Client
	devlink *devlink.Client
	sysfs   *os.File
}

// openRDMA opens what the RDMA device is read with, unless it is open.
func (n *namespace) openRDMA(need needs) error {
	var errRDMA, errFiles error
	if need["rdma"] && n.rdma == nil {
		n.rdma, errRDMA = n.ns.RDMA()
	}
	if need["sysfs"] && n.sysfs == nil && !n.isOwn {
		n.sysfs, errFiles = n.ns.SysFS()
	}
	return errors.Join(openError("rdma", errRDMA), openError("sysfs", errFiles))
}

// openNetdev opens what the netdev is read with, unless it is open.
func (n *namespace) openNetdev(need needs) error {
	var errLinks, errEthtool error
	if need["link"] && n.links == nil {
		n.links, errLinks = n.ns.Links()
	}
	if need["ethtool"] && n.ethtool == nil {
		n.ethtool, errEthtool = n.ns.Ethtool()
	}
	return errors.Join(openError("link", errLinks), openError("ethtool", errEthtool))
}

func (n *namespace) openDevlink(need needs) error {
	var err error
	if need["devlink"] && n.devlink == nil {
		n.devlink, err = n.ns.Devlink()
	}
	return openError("devlink", err)
}

// openError is an error in opening a source. What the kernel lacks is none.
func openError(source string, err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return readError(source, err)
}

// nowhere is a sysfs that has no files.
const nowhere = "/proc/self/fd/none"

// files is the tree in which the devices of the namespace are seen. That of our
// own namespace may show other devices under the same names.
func (n *namespace) files(fs sysfs.FS) sysfs.FS {
	switch {
	case n.isOwn:
		return fs
	case n.sysfs == nil:
		return fs.WithSys(nowhere)
	}
	return fs.WithSys("/proc/self/fd/" + strconv.Itoa(int(n.sysfs.Fd())))
}

// close closes all of it. An open socket would keep the namespace alive; the
// view of sysfs does not, and takes a while to unmount, so it is the last.
func (n *namespace) close() {
	if n.rdma != nil {
		_ = n.rdma.Close()
	}
	if n.links != nil {
		_ = n.links.Close()
	}
	if n.ethtool != nil {
		_ = n.ethtool.Close()
	}
	if n.devlink != nil {
		_ = n.devlink.Close()
	}
	_ = n.ns.Close()
	if n.sysfs != nil {
		_ = n.sysfs.Close()
	}
}

// isGone tells whether an error only says that a device or its namespace is no
// longer where it was, which the next snapshot will show.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// isNothing tells whether access is to nothing at all.
func isNothing(a counters.Access) bool {
	return a.RDMA == nil && a.Ethtool == nil && a.Links == nil && a.Devlink == nil && a.FS == (sysfs.FS{})
}

// without is access without a source that is left alone.
func without(a counters.Access, source string) counters.Access {
	switch source {
	case "rdma":
		a.RDMA = nil
	case "link":
		a.Links = nil
	case "ethtool":
		a.Ethtool = nil
	case "devlink":
		a.Devlink = nil
	case "sysfs":
		a.FS = a.FS.WithSys(nowhere)
	}
	return a
}
