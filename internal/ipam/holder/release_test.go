package holder_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/journal"
)

func TestReleaseWithQuarantine(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.1")
	n.grant("b", "10.2.0.1")
	r := request("p1", "s1", []string{"a"}, []string{"b"})
	n.assign(r)
	why := strings.Repeat("0a:00:00:00:00:01 answers for it ", 20)
	if _, freed, err := n.Release(r.Key, 0, map[netip.Addr]string{netip.MustParseAddr("10.1.0.1"): why}); !freed || err != nil {
		t.Fatal(freed, err)
	}
	if _, err := n.Assign(request("p2", "s1", []string{"a"})); err == nil {
		t.Error("an address in quarantine was assigned")
	}
	n.sync()
	want := []v1alpha1.Return{{Pool: "a", Epoch: 1, Addresses: []string{"10.1.0.1"}, Quarantine: why[:256]}}
	if diff := cmp.Diff(want, n.spec().Returns); diff != "" {
		t.Error(diff)
	}
	n.assign(request("p3", "s1", []string{"b"})) // the other one is free
}

func TestRevoke(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.1-10.1.0.3")
	r := request("p1", "s1", []string{"a"})
	n.assign(r)
	n.api.pool("a").Revoke = []string{"10.1.0.1-10.1.0.2"}
	n.api.answer()
	n.see()
	n.sync()
	if diff := cmp.Diff([]v1alpha1.Return{{Pool: "a", Epoch: 1, Addresses: []string{"10.1.0.2"}}}, n.spec().Returns); diff != "" {
		t.Errorf("one is in use: %s", diff)
	}
	if _, _, err := n.Release(r.Key, 0, nil); err != nil {
		t.Fatal(err)
	}
	n.sync()
	if diff := cmp.Diff([]v1alpha1.Return{{Pool: "a", Epoch: 1, Addresses: []string{"10.1.0.1-10.1.0.2"}}}, n.spec().Returns); diff != "" {
		t.Error(diff)
	}
}

func TestMigration(t *testing.T) {
	const vm = "VirtualMachine/ns/vm"
	n := newNode(t)
	r := request("target", "s1", []string{"a"})
	r.Identity, r.Migration = vm, true
	n.Expect(r)
	n.sync()
	pins := func(migration bool) []v1alpha1.Pin {
		return []v1alpha1.Pin{{Identity: vm, Wants: []v1alpha1.Want{{Pool: "a", Addresses: 1}}, Migration: migration}}
	}
	if diff := cmp.Diff(pins(true), n.spec().Pins); diff != "" {
		t.Error(diff)
	}
	n.api.grant("a", vm, "10.1.0.1")
	n.see()
	n.assign(r)
	n.sync()
	if diff := cmp.Diff(pins(false), n.spec().Pins); diff != "" {
		t.Errorf("it has arrived: %s", diff)
	}
	if _, _, err := n.Release(r.Key, 0, nil); err != nil {
		t.Fatal(err)
	}
	n.sync()
	if len(n.spec().Pins) > 0 || len(n.spec().Returns) != 1 {
		t.Errorf("pins %v, returns %v", n.spec().Pins, n.spec().Returns)
	}
}

// TestCompactionBySize has a journal grow until it is written anew, on a disk with
// room and on one where only the compaction fails: assignments go on, and what a
// restart finds is the same.
func TestCompactionBySize(t *testing.T) {
	for _, cannot := range []bool{false, true} {
		t.Run(fmt.Sprintf("replace fails: %t", cannot), func(t *testing.T) {
			d := &crowded{faulty: newFaulty(), cannot: cannot}
			n := nodeOn(t, d)
			n.grant("a", "10.1.0.1-10.1.0.4")
			kept := n.assign(request("kept", "s1", []string{"a"}))
			r := request("comes-and-goes", strings.Repeat("s", 10_000), []string{"a"})
			for range 150 {
				n.assign(r)
				if _, _, err := n.Release(r.Key, 0, nil); err != nil {
					t.Fatal(err)
				}
			}
			grew := n.Stats().JournalBytes > 2<<20
			if grew != cannot || d.replaced > 8 || d.replaced == 0 {
				t.Errorf("%d bytes after %d attempts to write it anew", n.Stats().JournalBytes, d.replaced)
			}
			n.start()
			if err := n.Ready(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(addresses(kept), addresses(n.Assignments()[0])); diff != "" || len(n.Assignments()) != 1 {
				t.Error(diff)
			}
		})
	}
}

// crowded is a disk that may have no room for another whole file.
type crowded struct {
	*faulty

	cannot   bool
	replaced int
}

func (d *crowded) Replace(name string, data []byte) error {
	if len(data) > 0 && len(d.data[name]) > 0 {
		d.replaced++
		if d.cannot {
			return fmt.Errorf("%w: no space left", journal.ErrUnchanged)
		}
	}
	return d.faulty.Replace(name, data)
}

func TestStats(t *testing.T) {
	n := newNode(t)
	n.api.grant("a", db0, "10.1.0.9")
	n.api.grant("a", "", "10.1.0.1-10.1.0.5")
	n.api.pool("b").Short = "all are held"
	a := n.api.pool("a")
	a.Reserve, a.Recall = 3, 2
	n.api.answer()
	n.see()
	n.assign(request("p1", "s1", []string{"a"}))
	if _, err := n.Assign(request("p2", "s1", []string{"b"})); err == nil {
		t.Fatal("got an address of an empty pool")
	}
	n.Expect(request("p3", "", []string{"b"}))
	n.Occupied(map[netip.Addr]string{netip.MustParseAddr("10.1.0.1"): "p1", netip.MustParseAddr("10.1.0.2"): "elsewhere"})
	got := n.Stats()
	if got.JournalBytes <= 0 {
		t.Error("a journal of no bytes")
	}
	got.JournalBytes = 0
	want := holder.Stats{Assignments: 1, Waiting: 1, Strays: 1, Pools: []holder.PoolStats{
		{Pool: "a", Granted: 6, Used: 1, Free: 1, Pinned: 1, Returning: 2, Reserve: 3, Recall: 2},
		{Pool: "b", Short: "all are held"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestManyAtOnce has hundreds of pods come and go at once, in two sandboxes each,
// while statuses arrive and the agent writes: no address is ever two pods', and in
// the end all are free.
func TestManyAtOnce(t *testing.T) {
	n := newNode(t)
	n.grant("a", "10.1.0.1-10.1.1.144")
	n.grant("b", "10.2.0.1-10.2.1.144")
	holders := &owners{of: map[string]string{}}
	var wait sync.WaitGroup
	for i := range 200 {
		wait.Go(func() {
			for _, sandbox := range []string{"s1", "s2", "s3"} {
				r := request(fmt.Sprint("p", i), sandbox, []string{"a"}, []string{"b"})
				a, err := n.Assign(r)
				if err == nil {
					err = holders.take(a)
				}
				if err == nil && sandbox != "s1" {
					holders.drop(a)
					_, _, err = n.Release(r.Key, a.Sequence, nil)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Go(func() {
		for range 20 {
			_ = n.Sync(t.Context(), n.api)
			n.Stats()
			n.Assignments()
		}
	})
	wait.Wait()
	if s := n.Stats(); s.Assignments != 0 || s.Pools[0].Free+s.Pools[0].Returning != 400 {
		t.Errorf("stats %+v", s)
	}
	n.start()
	if s := n.Stats(); s.Assignments != 0 || n.Ready() != nil {
		t.Errorf("after a restart: %+v, %v", s, n.Ready())
	}
}

// owners is who has which address.
type owners struct {
	mu sync.Mutex
	of map[string]string
}

func (o *owners) take(a holder.Assignment) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for _, addr := range addresses(a) {
		if who := o.of[addr]; who != "" && who != a.Pod.Name {
			errs = append(errs, fmt.Errorf("%s is of %s and of %s", addr, who, a.Pod.Name))
		}
		o.of[addr] = a.Pod.Name
	}
	return errors.Join(errs...)
}

func (o *owners) drop(a holder.Assignment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, addr := range addresses(a) {
		delete(o.of, addr)
	}
}
