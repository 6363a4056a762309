package inventory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// Reader reads facts from sysfs and netlink. It is not safe for concurrent use.
type Reader struct {
	fs      sysfs.FS
	node    node.Node // nil for a copy of a node
	archive *Netlink  // what netlink said when a copy was made; nil on a node

	links    *rtnl.Client
	rdma     *rdmanl.Client  // nil while the kernel has no RDMA
	settings *ethtool.Client // nil where the kernel has no ethtool netlink
}

// NewReader returns a Reader of a node, in its own network namespace. On the
// running node it needs no privilege; without CAP_SYS_ADMIN and CAP_SYS_PTRACE
// it cannot look for devices in other network namespaces. Close it after use.
func NewReader(n node.Node) (*Reader, error) {
	own := n.Own()
	links, err := own.Links()
	if err != nil {
		return nil, err
	}
	r := &Reader{fs: n.FS(), node: n, links: links}
	if r.settings, err = own.Ethtool(); err != nil && !errors.Is(err, ethtool.ErrNotSupported) {
		return nil, errors.Join(err, links.Close())
	}
	return r, nil
}

// NetlinkFile is where the copy of a node keeps what netlink said.
const NetlinkFile = "/netlink.json"

// netlinkLimit bounds NetlinkFile.
const netlinkLimit = 64 << 20

// NewArchiveReader returns a Reader of the copy of a node. Where the copy has
// no NetlinkFile, sysfs is all there is.
func NewArchiveReader(fsys sysfs.FS) (*Reader, error) {
	r := &Reader{fs: fsys, archive: &Netlink{}}
	text, err := fsys.ConfigFile(NetlinkFile, netlinkLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, r.archive); err != nil {
		return nil, fmt.Errorf("%s: %w", NetlinkFile, err)
	}
	return r, nil
}

// Close closes the netlink sockets.
func (r *Reader) Close() error {
	var errs []error
	if r.links != nil {
		errs = append(errs, r.links.Close())
	}
	if r.rdma != nil {
		errs = append(errs, r.rdma.Close())
	}
	if r.settings != nil {
		errs = append(errs, r.settings.Close())
	}
	return errors.Join(errs...)
}

// Read reads what changed and takes the rest from earlier facts; without
// earlier facts it reads everything. It always returns facts: what could not be
// read is in their Problems, and a device that goes away meanwhile is left out.
func (r *Reader) Read(prev *Facts, changed Changes) *Facts {
	if prev == nil || changed.All {
		prev, changed = &Facts{}, everything()
	}
	p := &pass{Reader: r, prev: prev, isLook: changed.isEmpty(), facts: &Facts{Kernel: prev.Kernel}}
	p.changed.merge(changed)
	p.changed.merge(prev.unread)
	p.kernel()
	p.netlink()
	p.pci()
	p.ib()
	p.agree()
	p.netdevs()
	p.chars()
	p.elsewhere()
	return p.facts
}

// pass is one pass of reading.
type pass struct {
	*Reader

	prev     *Facts
	changed  Changes
	isLook   bool // nothing changed here, so that it is about what is elsewhere
	facts    *Facts
	touched  map[int]bool // links that changed, and those below and above them
	ibNames  []string     // RDMA devices that sysfs lists
	isListed bool         // netlink listed all RDMA devices with their ports
}

func (p *pass) problem(err error) {
	if err != nil {
		p.facts.Problems = append(p.facts.Problems, err)
	}
}

// object notes an error of an object, which is then read again next time.
func (p *pass) object(name string, err error) {
	if err != nil {
		p.problem(err)
		p.facts.unread.merge(nameChange(name))
	}
}

func (p *pass) kernel() {
	if p.facts.Kernel != "" {
		return
	}
	release, err := p.fs.KernelRelease()
	if !errors.Is(err, fs.ErrNotExist) {
		p.problem(err)
	}
	p.facts.Kernel = release
}

// Classes of character devices, one of which is in the path of each of them.
const (
	verbsClass = "infiniband_verbs"
	madClass   = "infiniband_mad"
)

// byKey indexes a list.
func byKey[T any, K cmp.Ordered](list []T, key func(*T) K) map[K]*T {
	m := make(map[K]*T, len(list))
	for i := range list {
		m[key(&list[i])] = &list[i]
	}
	return m
}
