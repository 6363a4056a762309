package granter

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// Store is the objects of the cluster. Errors are those of
// k8s.io/apimachinery/pkg/api/errors; every other one means that a write may
// have happened. All reads are live (quorum) reads.
type Store interface {
	LedgerStore
	LeaseStore
}

// LedgerStore is the ledgers.
type LedgerStore interface {
	Ledgers(ctx context.Context) ([]v1alpha1.PoolLedger, error)
	Ledger(ctx context.Context, name string) (*v1alpha1.PoolLedger, error)
	CreateLedger(ctx context.Context, ledger *v1alpha1.PoolLedger) (*v1alpha1.PoolLedger, error)
	// UpdateLedger compares UID and resource version.
	UpdateLedger(ctx context.Context, ledger *v1alpha1.PoolLedger) (*v1alpha1.PoolLedger, error)
	// DeleteLedger compares UID and resource version, and takes off the finalizer, too.
	DeleteLedger(ctx context.Context, ledger *v1alpha1.PoolLedger) error
}

// LeaseStore is the leases.
type LeaseStore interface {
	// Lease is asked for only before addresses of a node are taken whose lease the View lacks.
	Lease(ctx context.Context, name string) (*v1alpha1.AddressLease, error)
	// UpdateLeaseStatus compares UID and resource version.
	UpdateLeaseStatus(ctx context.Context, lease *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error)
}

// View is what is known of the cluster when a round begins. It may be old,
// but for what is said otherwise.
type View struct {
	Leases []*v1alpha1.AddressLease // in order of names, each as some read showed it; Round changes none
	Pools  map[string]ipam.Pool
	// Nodes are the Node objects. One that was deleted is to be left here until
	// that is sure: its addresses are put into quarantine when it is missing.
	Nodes map[string]Node
	// Taken is which addresses of a pool pods have by SpiderEndpoints and
	// status.allocatedIPs; they are granted to nobody but on a node's exact word.
	// Nil or a nil set: none.
	Taken func(pool string) *netipx.IPSet
	// TakenBy is the pod ("namespace/name") that has a taken address, empty if
	// that is not known; nil: of none.
	TakenBy func(pool string, addr netip.Addr) string
	// GoneIdentity says that an identity never comes back: addresses kept for it are freed.
	GoneIdentity func(identity string) bool
	// GonePod says that a pod ("namespace/name" of a quarantine) is gone: its addresses are free.
	GonePod func(pod string) bool
	// Touched is ledgers that somebody else wrote or deleted since the last round,
	// each with the name of its pool: they are read before they are used. Ledgers
	// are the granter's own; it looks at none for what an administrator says on it,
	// or for whether it is there, unless it is told to. One that was named need not
	// be named again: it is read until that succeeds.
	Touched map[string]string
	Now     time.Time
}

// Node is what matters of a Node object.
type Node struct {
	UID    types.UID
	Fenced bool // out-of-service taint or an administrator's word
}

// Options are settings of a Granter.
type Options struct {
	ReserveMost int64 // of a node and pool, 32 if 0
	Parallel    int   // writes at once, 1 if 0
}

// Report is what a round did.
type Report struct {
	Granted     int // addresses
	Returned    int
	Quarantined int
	LedgerWrites,
	LeaseWrites int
	Conflicts int
	// Again says that more can be done at once, such as after a conflict.
	Again bool
	Pools map[string]PoolReport
	News  []News
}

// PoolReport is the addresses of a pool, after a round.
type PoolReport struct {
	Total       int64 // what the pool may give
	Held        int64 // by nodes, pinned ones included
	Free        int64
	Reserve     int64 // held by nodes beyond what they want
	Quarantined int64
	Pinned      int64 // by identities, on a node or on none
	Parked      int64 // of the pinned ones, on none
	Short       int64 // wanted and not there
	Recalled    int64 // asked back from nodes
}

// Granter decides and commits. Round may be called from several goroutines; rounds
// go one after the other.
type Granter struct {
	store   Store
	options Options

	turn sync.Mutex // held by the round that runs; guards what follows

	listed   bool
	unsure   bool             // another leader may have had ledgers give more than is remembered
	books    map[string]*book // ledgers by name
	leases   map[string]*lease
	pools    map[string]*pool
	fenced   map[string]types.UID // nodes by name that were seen fenced
	shares   *shares
	overlaps overlaps
	clock    int64 // grows with each change of a book
}

// New is a granter that knows nothing yet: its first round reads all ledgers.
func New(store Store, options Options) *Granter {
	if options.ReserveMost == 0 {
		options.ReserveMost = 32
	}
	return &Granter{
		store: store, options: options, books: map[string]*book{},
		leases: map[string]*lease{}, pools: map[string]*pool{}, fenced: map[string]types.UID{},
	}
}
