package counters

import (
	"errors"
	"slices"
	"strconv"

	"railhead/internal/inventory"
	"railhead/internal/kernel/devlink"
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// Access is how to reach a device. RDMA and FS are of the network namespace
// where the RDMA device is, Ethtool and Links of that of its netdevs, Devlink of
// that of the PCI function. What is nil is not there, and not asked.
type Access struct {
	RDMA    *rdmanl.Client
	Ethtool *ethtool.Client
	Links   *rtnl.Client
	Devlink *devlink.Client
	FS      sysfs.FS
	Spared  map[string]bool // questions that are not asked, as ReadError.Question says them
}

// Who is asked, as ReadError.Source says it.
const (
	fromRDMA    = "rdma"    // Access.RDMA
	fromEthtool = "ethtool" // Access.Ethtool
	fromLink    = "link"    // Access.Links
	fromDevlink = "devlink" // Access.Devlink
	fromFiles   = "sysfs"   // Access.FS
)

// Reader reads one device again and again. It keeps the names of counters,
// which of them are wanted, and how far counters that wrap had come; it holds
// no socket and no file. A device that was registered anew, or moved, or has
// another netdev, wants a new Reader, which [Reader.Continue] can have go on. It is not safe for concurrent use.
type Reader struct {
	device  *inventory.Device
	driver  string
	groups  []*group
	others  []question
	places  []*place                // each of another port or netdev
	cells   []uint64                // of the group that was just asked; see group.cells
	whole   *place                  // of the device
	apart   map[qpCounter][]*Series // of counters that queue pairs have apart
	unknown []string

	kept     []Narrow // by another Reader, of counters that were not read yet
	wentBack uint64

	families map[string]*Family // of unknown counters, by name
}

// question is one that brings no counters of the tables.
type question struct {
	name   string
	kernel string
	tier   Tier
	rest   rest
	ask    func(r *Reader, a Access, dst []Sample) ([]Sample, error)
}

// NewReader returns a Reader of a device, which needs an RDMA device. It reads
// nothing yet.
func NewReader(d *inventory.Device) *Reader {
	r := &Reader{device: d, driver: Driver(d)}
	if d.RDMA != nil {
		r.plan()
	}
	return r
}

// Unknown returns the kernel's names of counters that were read and that the
// tables have no row for.
func (r *Reader) Unknown() []string { return slices.Clone(r.unknown) }

// Read appends to dst what the device has in a tier. A question that fails hides
// no other: what could be read is returned with all errors, each a [*ReadError],
// joined. What driver or kernel does not have is no error, and is asked for
// again only now and then. A series has the same pointer in each Read.
func (r *Reader) Read(tier Tier, a Access, dst []Sample) ([]Sample, error) {
	var errs []error
	for _, g := range r.groups {
		if !g.tiers.has(tier) || a.Spared[g.question] || g.rest.goesOn() || !a.has(g.kernel) {
			continue
		}
		names, values, err := g.ask(a)
		if isLacking(err) {
			g.rest.begin()
			continue
		}
		if err != nil {
			errs = append(errs, blame(g.kernel, g.question, err))
		}
		if names == nil {
			continue
		}
		g.take(r, names, values)
		dst = g.emit(tier, r.cells, dst)
	}
	for i := range r.others {
		q := &r.others[i]
		if q.tier != tier || a.Spared[q.name] || q.rest.goesOn() || !a.has(q.kernel) {
			continue
		}
		var err error
		dst, err = q.ask(r, a, dst)
		switch {
		case isLacking(err):
			q.rest.begin()
		case err != nil:
			errs = append(errs, blame(q.kernel, q.name, err))
		}
	}
	return dst, errors.Join(errs...)
}

// has tells whether someone can be asked.
func (a *Access) has(kernel string) bool {
	switch kernel {
	case fromRDMA:
		return a.RDMA != nil
	case fromEthtool:
		return a.Ethtool != nil
	case fromLink:
		return a.Links != nil
	case fromDevlink:
		return a.Devlink != nil
	}
	return true
}

// rest is how often a question is not asked, because it had no answer. A driver
// may say of a fault that it does not have what it was asked for.
type rest int

// restFor is how often a question is left out after it had no answer.
const restFor = 20

func (r *rest) begin() { *r = restFor }

// goesOn counts a question that is left out.
func (r *rest) goesOn() bool {
	if *r == 0 {
		return false
	}
	*r--
	return true
}

// isLacking tells whether an error says that driver or kernel does not have
// what was asked for.
func isLacking(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, ethtool.ErrNotSupported) ||
		errors.Is(err, devlink.ErrNotSupported) || errors.Is(err, rtnl.ErrNotSupported)
}

// at is the place of a port and netdev of the device, the same each time.
func (r *Reader) at(port, netdev string) *place {
	for _, p := range r.places {
		if p.label("port") == port && p.label("netdev") == netdev {
			return p
		}
	}
	p := newPlace(r.device.RDMA.Name, port, netdev)
	r.places = append(r.places, p)
	return p
}

func (r *Reader) atPort(p *inventory.Port) *place { return r.at(strconv.Itoa(p.Number), p.Netdev) }

// sample is a sample of a family that no counter feeds.
func (r *Reader) sample(name string, where *place, value uint64, labels ...string) Sample {
	var own values
	copy(own[:], labels)
	return Sample{Series: &where.slot(known.byName[name], own, 1).series, Value: value}
}
