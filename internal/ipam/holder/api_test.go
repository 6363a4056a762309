package holder_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/journal"
)

// server is an API server with one lease, and a controller that does as it is told.
type server struct {
	lease   *v1alpha1.AddressLease
	version int
	fail    error // of the next write
	lost    error // of the next write, which is done all the same
	writes  int
	epoch   int64
}

var leases = schema.GroupResource{Group: "railhead.io", Resource: "addressleases"}

func (s *server) next() string { s.version++; return strconv.Itoa(s.version) }

func (s *server) Lease(context.Context) (*v1alpha1.AddressLease, error) {
	if s.lease == nil {
		return nil, apierrors.NewNotFound(leases, "node1")
	}
	return s.lease.DeepCopy(), nil
}

func (s *server) CreateLease(_ context.Context, l *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	return s.write(l, s.lease == nil, apierrors.NewAlreadyExists(leases, l.Name))
}

func (s *server) UpdateLease(_ context.Context, l *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	if s.lease == nil {
		return nil, apierrors.NewNotFound(leases, l.Name)
	}
	return s.write(l, l.ResourceVersion == s.lease.ResourceVersion, apierrors.NewConflict(leases, l.Name, errors.New("newer")))
}

func (s *server) write(l *v1alpha1.AddressLease, ok bool, refused error) (*v1alpha1.AddressLease, error) {
	if err := s.fail; err != nil {
		s.fail = nil
		return nil, err
	}
	if !ok {
		return nil, refused
	}
	now := l.DeepCopy()
	now.Status = v1alpha1.AddressLeaseStatus{}
	if s.lease != nil {
		now.Status = s.lease.Status
	}
	now.ResourceVersion = s.next()
	now.Generation++
	s.lease = now
	s.writes++
	if err := s.lost; err != nil {
		s.lost = nil
		return nil, err
	}
	return now.DeepCopy(), nil
}

// grant adds addresses to the status of a pool, under a new epoch.
func (s *server) grant(pool, identity string, addresses ...string) {
	s.epoch++
	p := s.pool(pool)
	p.Grants = append(p.Grants, v1alpha1.Grant{Epoch: s.epoch, Addresses: addresses, Identity: identity})
	s.answer()
}

func (s *server) pool(name string) *v1alpha1.LeasedPool {
	pools := &s.lease.Status.Pools
	i := slices.IndexFunc(*pools, func(p v1alpha1.LeasedPool) bool { return p.Pool == name })
	if i < 0 {
		*pools = append(*pools, v1alpha1.LeasedPool{Pool: name})
		i = len(*pools) - 1
	}
	return &(*pools)[i]
}

// answer makes a version of the status.
func (s *server) answer() {
	s.lease.Status.ObservedGeneration = s.lease.Generation
	s.lease.Status.NodeUID = s.lease.Spec.NodeUID
	s.lease.ResourceVersion = s.next()
}

// take does what spec.returns says.
func (s *server) take() {
	for _, r := range s.lease.Spec.Returns {
		gone, _ := ipam.ParseRanges(r.Addresses)
		p := s.pool(r.Pool)
		for i := range p.Grants {
			if p.Grants[i].Epoch == r.Epoch {
				had, _ := ipam.ParseRanges(p.Grants[i].Addresses)
				p.Grants[i].Addresses = ipam.FormatList(ipam.Without(had.Ranges(), gone.Ranges()))
			}
		}
	}
	s.answer()
}

// node is a holder with its disk and its server.
type node struct {
	t    *testing.T
	api  *server
	disk journal.Disk
	now  time.Time
	boot string
	runs int
	*holder.Holder
}

func newNode(t *testing.T) *node {
	t.Helper()
	disk, err := journal.OS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return nodeOn(t, disk)
}

// nodeOn is a node that may assign.
func nodeOn(t *testing.T, disk journal.Disk) *node {
	t.Helper()
	n := &node{t: t, api: &server{}, disk: disk, now: time.Unix(1e9, 0), boot: "boot1"}
	n.start()
	n.Occupied(nil)
	n.sync()
	if err := n.Ready(); err != nil {
		t.Fatal(err)
	}
	return n
}

// start starts the agent, anew if it ran.
func (n *node) start() {
	n.t.Helper()
	n.runs++
	h, err := holder.Open(n.disk, holder.Options{
		Node: "node1", UID: "uid1", BootID: n.boot, Session: "session" + strconv.Itoa(n.runs),
		Now: func() time.Time { return n.now },
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.Holder = h
}

func (n *node) sync() {
	n.t.Helper()
	for i := 0; n.Dirty() && i < 5; i++ {
		if err := n.Sync(n.t.Context(), n.api); err != nil {
			n.t.Fatal(err)
		}
	}
	if n.Dirty() {
		n.t.Fatal("dirty after five syncs")
	}
}

// see shows the newest version of the lease.
func (n *node) see() {
	n.t.Helper()
	if err := n.Observe(n.api.lease.DeepCopy()); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) grant(pool string, addresses ...string) {
	n.t.Helper()
	n.api.grant(pool, "", addresses...)
	n.see()
}

func (n *node) assign(r holder.Request) holder.Assignment {
	n.t.Helper()
	a, err := n.Assign(r)
	if err != nil {
		n.t.Fatal(err)
	}
	return a
}

func (n *node) spec() v1alpha1.AddressLeaseSpec { return n.api.lease.Spec }

// request is for one interface for each list of pools.
func request(pod, sandbox string, pools ...[]string) holder.Request {
	r := holder.Request{
		Key: holder.Key{PodUID: types.UID(pod), Sandbox: sandbox}, Pod: types.NamespacedName{Namespace: "ns", Name: pod},
	}
	for i, names := range pools {
		var c holder.Choice
		for _, name := range names {
			c.Pools = append(c.Pools, holder.PoolRef{Name: name, Subnet: subnets[name]})
		}
		r.NICs = append(r.NICs, holder.NIC{Interface: "net" + strconv.Itoa(i+1), Choices: []holder.Choice{c}})
	}
	return r
}

var subnets = map[string]netip.Prefix{
	"a": netip.MustParsePrefix("10.1.0.0/16"), "b": netip.MustParsePrefix("10.2.0.0/16"),
	"c": netip.MustParsePrefix("10.3.0.0/24"), "six": netip.MustParsePrefix("fd00::/64"),
}

func addresses(a holder.Assignment) []string {
	var all []string
	for _, given := range a.Addresses {
		all = append(all, given.Prefix.Addr().String())
	}
	return all
}

func contains(ranges []string, addr netip.Addr) bool {
	set, err := ipam.ParseRanges(ranges)
	return err == nil && set.Contains(addr)
}
