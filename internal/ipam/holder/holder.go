package holder

import (
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/journal"
)

// Options say which node this is.
type Options struct {
	Node   string
	UID    types.UID // of the Node object
	BootID string    // of the kernel: no pod outlives it
	// Session is a new word for each run of the agent.
	Session string
	Now     func() time.Time
}

// Holder is the addresses of one node. It is safe for concurrent use.
type Holder struct {
	options Options
	journal *journal.Journal[record]
	syncing sync.Mutex // one Sync at a time; taken before mu

	mu sync.Mutex
	// of the journal
	position  int64 // of the last record
	compactAt int64 // its size from which it is written anew
	behind    bool  // it lacks something, and must be written anew
	limbo     map[string]map[netip.Addr]bool
	// what follows from records
	session  string
	ready    bool // R7: it may assign
	sequence uint64
	order    uint64 // of releases
	seen     *status
	pools    map[string]*pool
	pods     map[types.UID]*entry
	strays   map[netip.Addr]string
	// of this run alone
	why       string // the journal was of no use; empty: it was
	told      bool   // Occupied was called
	announced bool   // the session is in the lease
	waits     map[types.UID]*wait
	subnets   map[string]netip.Prefix
	excess    map[string]time.Time   // since when a pool has too much; of an identity: since when it is idle
	lease     *v1alpha1.AddressLease // the newest one seen
	nonsense  error                  // what of its status cannot be read
	unread    bool                   // R8: read it live before the next write
	changes   uint64                 // counts what may change the spec
	wrote     uint64                 // changes that are in the lease
	changed   chan struct{}          // nil: nobody asked for it
}

// entry is an assignment, and where in the journal it is.
type entry struct {
	*Assignment
	position int64
	before   *entry // what it took the place of: back if it does not reach the disk
}

// Assignments returns all assignments, the oldest first.
func (h *Holder) Assignments() []Assignment {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Assignment, 0, len(h.pods))
	for _, e := range h.sortedPods() {
		all = append(all, e.answer())
	}
	return all
}

// Changed returns a channel that is closed when there may be more addresses to
// assign than now.
func (h *Holder) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.changed
}

// notify wakes those who wait for addresses.
func (h *Holder) notify() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// touch notes that the spec of the lease may have to change.
func (h *Holder) touch() { h.changes++ }

// learn remembers the subnet of a pool.
func (h *Holder) learn(ref PoolRef) { h.subnets[ref.Name] = ref.Subnet }
