package holder_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/ipam/holder"
)

// faulty is a directory in memory of which some operations fail, or that is gone
// from one on.
type faulty struct {
	data, durable map[string][]byte
	ops           int
	from, to      int  // the operations that fail
	half          bool // a failing append leaves a half
}

func newFaulty() *faulty {
	return &faulty{data: map[string][]byte{}, durable: map[string][]byte{}}
}

func (d *faulty) step() error {
	d.ops++
	if d.ops >= d.from && d.ops < d.to {
		return syscall.EIO
	}
	return nil
}

func (d *faulty) Read(name string) ([]byte, error) {
	data, ok := d.data[name]
	if err := d.step(); err != nil {
		return nil, err
	}
	if !ok {
		return nil, fs.ErrNotExist
	}
	return append([]byte(nil), data...), nil
}

func (d *faulty) Append(name string, data []byte) error {
	err := d.step()
	if err != nil && !d.half {
		return err
	}
	if err != nil {
		data = data[:len(data)/2]
	}
	d.data[name] = append(d.data[name][:len(d.data[name]):len(d.data[name])], data...)
	return err
}

func (d *faulty) Sync(name string) error {
	if err := d.step(); err != nil {
		return err
	}
	d.durable[name] = d.data[name]
	return nil
}

func (d *faulty) Truncate(name string, size int64) error {
	if err := d.step(); err != nil {
		return err
	}
	d.data[name] = d.data[name][:size]
	return nil
}

func (d *faulty) Replace(name string, data []byte) error {
	err := d.step()
	if err == nil || d.half { // the rename was done, and what came after it failed
		d.data[name] = append([]byte(nil), data...)
		d.durable[name] = d.data[name]
	}
	return err
}

// crashed is what is there after the machine stopped: what was synced, and a
// share of what was not.
func (d *faulty) crashed(share int) *faulty {
	after := newFaulty()
	for name, data := range d.data {
		kept := d.durable[name]
		if strings.HasPrefix(string(data), string(kept)) {
			kept = data[:len(kept)+(len(data)-len(kept))*share/2]
		}
		after.data[name], after.durable[name] = kept, kept
	}
	return after
}

// story is a fixed life of a node, and what its pods were told.
type story struct {
	*node
	disk *faulty
	told map[types.UID]holder.Assignment
	// unsure is pods of which the last thing asked had no good answer.
	unsure map[types.UID]bool
}

func (s *story) assign(r holder.Request) {
	s.t.Helper()
	a, err := s.Assign(r)
	if err != nil {
		s.unsure[r.PodUID] = true
		return
	}
	for _, given := range a.Addresses {
		if s.api.gives(given.Pool, given.Prefix.Addr(), given.Epoch) {
			s.t.Errorf("pod %s got %s, which the lease gives back", a.Pod, given.Prefix)
		}
		for uid, other := range s.told {
			for _, had := range other.Addresses {
				if uid != a.PodUID && !s.unsure[uid] && had.Prefix == given.Prefix {
					s.t.Errorf("pod %s got %s, which pod %s has", a.Pod, given.Prefix, other.Pod)
				}
			}
		}
	}
	s.told[r.PodUID] = a
	delete(s.unsure, r.PodUID)
}

func (s *story) release(pod string, quarantine map[netip.Addr]string) {
	uid := types.UID(pod)
	_, freed, err := s.Release(holder.Key{PodUID: uid}, 0, quarantine)
	if err != nil {
		s.unsure[uid] = true
	}
	if freed && err == nil {
		delete(s.told, uid)
		delete(s.unsure, uid)
	}
}

// gives says whether the lease gives back a grant of an address.
func (s *server) gives(pool string, addr netip.Addr, epoch int64) bool {
	for _, r := range s.lease.Spec.Returns {
		if r.Pool == pool && r.Epoch == epoch && contains(r.Addresses, addr) {
			return true
		}
	}
	return false
}

// reopen starts the agent anew, and says whether that was possible.
func (s *story) reopen() bool {
	s.runs++
	h, err := holder.Open(s.node.disk, holder.Options{
		Node: "node1", UID: "uid1", BootID: s.boot, Session: fmt.Sprint("session", s.runs), Now: func() time.Time { return s.now },
	})
	if err == nil {
		s.Holder = h
	}
	return err == nil
}

func (s *story) try() { _ = s.Sync(s.t.Context(), s.api) }

// live is the whole story: assignments, a release, one with quarantine, a recall
// with its returns, a compaction, a new sandbox, a restart, and some more.
func (s *story) live() {
	if !s.reopen() {
		return
	}
	s.Occupied(nil)
	s.try()
	if s.api.lease == nil {
		return
	}
	s.api.grant("a", "", "10.1.0.1-10.1.0.6")
	s.api.grant("b", "", "10.2.0.1-10.2.0.6")
	s.see()
	s.assign(request("p1", "s1", []string{"a"}, []string{"b"}))
	s.assign(request("p2", "s1", []string{"a"}, []string{"b"}))
	s.release("p1", nil)
	s.assign(request("p3", "s1", []string{"a"}))
	s.release("p3", map[netip.Addr]string{netip.MustParseAddr("10.1.0.3"): "somebody has it"})
	s.api.pool("a").Recall = 2
	s.api.answer()
	s.see()
	s.try()
	s.api.pool("a").Recall = 0
	s.api.take()
	s.see()
	long := strings.Repeat("x", 600_000)
	s.Occupied(map[netip.Addr]string{netip.MustParseAddr("10.9.0.1"): long})
	s.Occupied(map[netip.Addr]string{netip.MustParseAddr("10.9.0.2"): long})
	s.Occupied(nil) // from here on the journal is too long
	s.assign(request("p4", "s1", []string{"b"}))
	s.assign(request("p2", "s2", []string{"a"}))
	if !s.reopen() {
		return
	}
	if s.Ready() != nil {
		s.Occupied(nil)
		s.try()
	}
	s.assign(request("p5", "s1", []string{"a"}, []string{"b"}))
	s.release("p4", nil)
	s.try()
}

func newStory(t *testing.T, d *faulty) *story {
	t.Helper()
	return &story{
		node: &node{t: t, api: &server{}, disk: d, now: time.Unix(1e9, 0), boot: "boot1"}, disk: d,
		told: map[types.UID]holder.Assignment{}, unsure: map[types.UID]bool{},
	}
}

// check starts the agent once more, on a disk in order, and holds what it knows
// against what was told. Then all pods end, and all addresses go back.
func (s *story) check() {
	s.t.Helper()
	if !s.reopen() {
		s.t.Fatal("the journal cannot be opened")
	}
	knows := map[types.UID]holder.Assignment{}
	for _, a := range s.Assignments() {
		knows[a.PodUID] = a
		if _, ok := s.told[a.PodUID]; !ok && !s.unsure[a.PodUID] {
			s.t.Errorf("pod %s was released, and has %v", a.Pod, addresses(a))
		}
	}
	for uid, a := range s.told {
		now, ok := knows[uid]
		if same := ok && fmt.Sprint(addresses(now)) == fmt.Sprint(addresses(a)); !same && !s.unsure[uid] {
			s.t.Errorf("pod %s was told %v, and has %v; ready: %v", a.Pod, addresses(a), addresses(now), s.Ready())
		}
	}
	if s.Ready() == nil { // it serves without the API server
		for i := range 6 {
			s.assign(request(fmt.Sprint("late", i), "s1", []string{"a"}))
			s.assign(request(fmt.Sprint("later", i), "s1", []string{"b"}))
		}
	}
	l := &life{node: s.node, disk: newDisk(nil)}
	s.Occupied(nil)
	s.sync()
	for i := range 6 {
		s.Abandon(holder.Key{PodUID: types.UID(fmt.Sprint("late", i))})
		s.Abandon(holder.Key{PodUID: types.UID(fmt.Sprint("later", i))})
	}
	l.settle()
}

// TestEveryFault fails each operation of the story in turn: alone, and with
// all that come after.
func TestEveryFault(t *testing.T) {
	whole := newFaulty()
	newStory(t, whole).live()
	for from := 1; from <= whole.ops; from++ {
		for _, most := range []int{1, 1e6} {
			for _, half := range []bool{false, true} {
				d := newFaulty()
				d.from, d.to, d.half = from, from+most, half
				s := newStory(t, d)
				s.live()
				d.from, d.to = 0, 0
				s.check()
				if t.Failed() {
					t.Fatalf("operation %d of %d and so many in all failed: %d, half done: %t", from, whole.ops, most, half)
				}
			}
		}
	}
}

// TestEveryCrash stops the machine before each operation of the story, with
// nothing, half and all on disk of what was not synced.
func TestEveryCrash(t *testing.T) {
	whole := newFaulty()
	newStory(t, whole).live()
	if whole.ops < 20 {
		t.Fatalf("a story of %d operations", whole.ops)
	}
	for from := 1; from <= whole.ops+1; from++ {
		for share := range 3 {
			d := newFaulty()
			d.from, d.to = from, 1e6
			s := newStory(t, d)
			s.live()
			s.disk = d.crashed(share)
			s.node.disk = s.disk
			s.check()
			if t.Failed() {
				t.Fatalf("stopped before operation %d of %d, %d halves on disk of what was not synced", from, whole.ops, share)
			}
		}
	}
}

// TestReturnThatIsNotOnDiskIsNotSaid has a pinned address given back that the
// journal does not know of: the lease says so only once it does.
func TestReturnThatIsNotOnDiskIsNotSaid(t *testing.T) {
	d := newFaulty()
	n := nodeOn(t, d)
	n.api.grant("a", db0, "10.1.0.1")
	n.see()
	r := request("p1", "s1", []string{"a"})
	r.Identity = db0
	n.assign(r)
	n.sync()
	d.from, d.to = 0, 1e6
	if _, _, err := n.Release(r.Key, 0, nil); !errors.Is(err, holder.ErrDisk) {
		t.Fatal(err)
	}
	if err := n.Sync(t.Context(), n.api); !errors.Is(err, holder.ErrDisk) {
		t.Fatal(err)
	}
	if len(n.spec().Returns) > 0 {
		t.Errorf("said %v, which a crash would undo", n.spec().Returns)
	}
	d.to = 0
	n.sync()
	if len(n.spec().Returns) != 1 {
		t.Errorf("said %v", n.spec().Returns)
	}
}

// TestFullDiskRefusesAndRecovers has no room for a while: assignments are refused,
// what is released is not used before it is on disk, and then it is.
func TestFullDiskRefusesAndRecovers(t *testing.T) {
	d := newFaulty()
	n := nodeOn(t, d)
	n.grant("a", "10.1.0.1")
	r := request("p1", "s1", []string{"a"})
	n.assign(r)
	d.from, d.to = 0, 1e6
	if _, freed, err := n.Release(r.Key, 0, nil); !freed || !errors.Is(err, holder.ErrDisk) {
		t.Fatalf("released %t, %v", freed, err)
	}
	if _, err := n.Assign(request("p2", "s1", []string{"a"})); err == nil {
		t.Fatal("an address was used whose release is nowhere on disk")
	}
	d.to = 0
	if !n.Dirty() {
		t.Error("nothing asks for Sync")
	}
	n.sync()
	n.assign(request("p2", "s1", []string{"a"}))
}
