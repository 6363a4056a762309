// Package fakekernel answers as a kernel would, from plain facts: about links,
// addresses, VFs and priority flow control (rtnetlink), RDMA devices with what
// they count and who uses them (NETLINK_RDMA), what network devices run at and
// count (ethtool, by netlink and by ioctl) and the health of devices (devlink).
// It plays the hardware that a test or a simulation does not have.
//
// A Kernel is one network namespace. Its clients are those of the packages
// beside this one, which cannot tell:
//
//	k := fakekernel.New(fakekernel.Facts{RDMA: devices, HCAs: hcas})
//	counters, err := k.RDMA().Statistics(0, 1)
//
// Facts change by [Kernel.Change], or by [Kernel.ChangeHCA] and
// [Kernel.ChangeNIC] for those of one device, and counters by themselves: they
// are functions. A change makes no event; [Kernel.SendLink],
// [Kernel.SendAddress], [Kernel.SendRDMA] and [Kernel.SendUevent] do. Requests
// can be refused, interrupted and take their time: [Kernel.Refuse],
// [Kernel.Interrupt], [Kernel.Delay].
//
// A Kernel knows the requests that the clients make to learn what there is, and
// those that bind queue pairs to counters, which change its facts. It refuses
// all others as unsupported, starts no goroutines, and files of sysfs are not
// its business.
package fakekernel

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Kernel answers requests. It is safe for concurrent use.
type Kernel struct {
	mu       sync.Mutex
	facts    Facts
	replies  map[string]reply // to requests made since the facts last changed
	named    map[string]int   // links by name; nil where not known since then
	refusals map[Request]refusal
	delays   map[Request]map[int]delay
	torn     map[Request]int // how many more dumps are interrupted
	asked    map[Request]int

	heard   listeners
	sockets atomic.Int64 // clients that are open
	values  sync.Pool    // of *[]uint64, for the functions of facts
}

// New returns a Kernel with these facts. Slices and maps in them belong to the
// Kernel.
func New(facts Facts) *Kernel {
	return &Kernel{
		facts:    facts,
		replies:  map[string]reply{},
		refusals: map[Request]refusal{},
		delays:   map[Request]map[int]delay{},
		torn:     map[Request]int{},
		asked:    map[Request]int{},
		values:   sync.Pool{New: func() any { return new([]uint64) }},
	}
}

// Change changes the facts. Slices and maps in them belong to the Kernel.
func (k *Kernel) Change(change func(*Facts)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.facts)
	k.named = nil
	clear(k.replies)
}

// ChangeHCA changes what is known of an RDMA device beyond Facts.RDMA. It is
// cheaper than Change, after which all answers are made anew.
func (k *Kernel) ChangeHCA(device uint32, change func(*HCA)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.facts.HCAs[device]
	if h == nil {
		h = &HCA{}
		k.facts.HCAs = with(k.facts.HCAs, device, h)
	}
	change(h)
	k.forget(rdmaDevice, int(device))
}

// ChangeNIC changes what is known of a link beyond Facts.Links, as ChangeHCA
// does of an RDMA device.
func (k *Kernel) ChangeNIC(link int, change func(*NIC)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.facts.NICs[link]
	if n == nil {
		n = &NIC{}
		k.facts.NICs = with(k.facts.NICs, link, n)
	}
	change(n)
	k.forget(netLink, link)
}

// with returns a map with an element more.
func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	m[key] = value
	return m
}

// forget drops the replies that say something of an object.
func (k *Kernel) forget(kind objectKind, object int) {
	maps.DeleteFunc(k.replies, func(_ string, r reply) bool {
		return r.kind == kind && slices.Contains(r.objects, object)
	})
}

// Look shows the facts as they are. Nothing in them may be changed or kept.
func (k *Kernel) Look(look func(Facts)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	look(k.facts)
}

// Sockets returns how many clients are open: so long as there is one, a kernel
// keeps its network namespace alive.
func (k *Kernel) Sockets() int { return int(k.sockets.Load()) }

// Asked returns how many requests of a kind were made, also those that are not
// answered yet.
func (k *Kernel) Asked(r Request) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked[r]
}
