package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach"
	"railhead/internal/ipam/journal"
	"railhead/internal/kernel/netns"
)

// numbered is the n-th attachment.
func numbered(n int) Attachment {
	id := fmt.Sprintf("sandbox%03d", n)
	return Attachment{
		ContainerID: id, PodUID: "uid-" + id, Namespace: "ai", Name: fmt.Sprint("trainer-", n), NetNS: "/proc/1/ns/net",
		ID: netns.ID{Dev: 4, Ino: 4026531840 + uint64(n)}, BootID: "boot", At: time.Date(2026, 3, 4, 5, 6, n, 0, time.UTC),
		State: Attached, Sequence: uint64(n), Key: Key{PodUID: "uid-" + id, Sandbox: id},
		Plan: &attach.Plan{Version: attach.Version, ContainerID: id, Interfaces: []attach.PlannedInterface{
			{Name: "net1", Kind: attach.Macvlan, Parent: "p0", Addresses: []netip.Prefix{netip.MustParsePrefix("172.16.11.7/24")}},
		}},
		Networks: []Network{{Name: "cluster", Interface: "eth0", Default: true, Delegated: []Delegate{
			{Config: json.RawMessage(`{"type":"bridge"}`), Type: "bridge", IfName: "eth0", Result: json.RawMessage(`{"ips":[]}`)},
		}}},
		Answer: json.RawMessage(`{"cniVersion":"1.1.0"}`),
		Report: Report{
			Took: 12 * time.Millisecond, Steps: []Step{{"links", 1500 * time.Microsecond}},
			Checks: []Check{{Interface: "net1", Kind: CheckGateway, Address: "172.16.11.254", OK: true, Waited: time.Millisecond, Tries: 1}},
		},
	}
}

// differ is cmp.Diff of values with addresses.
func differ(want, got any) string {
	return cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }))
}

func open(tb testing.TB, d journal.Disk) *Store {
	tb.Helper()
	s, err := Open(d, File)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// keep puts and waits for the disk.
func keep(tb testing.TB, s *Store, all ...Attachment) {
	tb.Helper()
	for _, a := range all {
		done(tb)(s.Put(a))
	}
}

func done(tb testing.TB) func(func() error, error) {
	tb.Helper()
	return func(sync func() error, err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		if err := sync(); err != nil {
			tb.Fatal(err)
		}
	}
}

// ids are the container IDs in order.
func ids(all []Attachment) []string {
	list := []string{}
	for _, a := range all {
		list = append(list, a.ContainerID)
	}
	return list
}

// readAgain is what another process sees of a disk.
func readAgain(tb testing.TB, d *disk) ([]Attachment, journal.Damage) {
	tb.Helper()
	all, damage, err := Read(filesOf(d), File)
	if err != nil {
		tb.Fatal(err)
	}
	return all, damage
}

func TestStore(t *testing.T) {
	t.Parallel()
	d := newDisk()
	s := open(t, d)
	want := []Attachment{numbered(1), numbered(2), numbered(3)}
	keep(t, s, want[2], want[0], numbered(9), want[1])
	attaching := want[1]
	attaching.State = Attaching
	keep(t, s, attaching, want[1]) // in place of what there was
	done(t)(s.Remove("sandbox009"))
	done(t)(s.Remove("sandbox009"))
	done(t)(s.Remove("never"))
	if diff := differ(want, s.All()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if a, ok := s.Get("sandbox002"); !ok || differ(want[1], a) != "" {
		t.Errorf("%t %+v", ok, a)
	}
	if _, ok := s.Get("sandbox009"); ok {
		t.Error("what was removed is there")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := differ(want, open(t, d.crash(0)).All()); diff != "" {
		t.Errorf("after a crash: -want +got:\n%s", diff)
	}
	if all, damage := readAgain(t, d); differ(want, all) != "" || damage != journal.DamageNone {
		t.Errorf("read: %v, %s", damage, differ(want, all))
	}
	if _, err := s.Put(Attachment{}); err == nil || !strings.Contains(err.Error(), "want that of the sandbox") {
		t.Errorf("without an ID: %v", err)
	}
	for at, spoil := range map[string]func(*Attachment){
		"answer":                          func(a *Attachment) { a.Answer = json.RawMessage("{") },
		"networks[0].delegated[0].result": func(a *Attachment) { a.Networks[0].Delegated[0].Result = json.RawMessage("") },
	} {
		bad := numbered(4)
		spoil(&bad)
		if _, err := s.Put(bad); err == nil || errors.Is(err, ErrDisk) || !strings.Contains(err.Error(), "attachment sandbox004: "+at) || len(s.All()) != 3 {
			t.Errorf("no JSON: %v, %v", err, ids(s.All()))
		}
	}
}

// TestChanges are not seen where they were not put.
func TestChanges(t *testing.T) {
	t.Parallel()
	s := open(t, newDisk())
	a := numbered(1)
	keep(t, s, a)
	a.Networks[0].Delegated[0].Type = "changed"
	got, _ := s.Get(a.ContainerID)
	got.Networks[0].Delegated[0].IfName = "changed"
	got.Networks[0].Name = "changed"
	if again, _ := s.Get(a.ContainerID); differ(numbered(1), again) != "" {
		t.Error(differ(numbered(1), again))
	}
}

func TestRealDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := journal.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, d)
	if _, _, err := Read(os.DirFS(dir), File); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("read before there is a file: %v", err)
	}
	keep(t, s, numbered(1), numbered(2))
	done(t)(s.Remove("sandbox001"))
	all, damage, err := Read(os.DirFS(dir), File) // while the other has its lock
	if err != nil || damage != journal.DamageNone || differ([]Attachment{numbered(2)}, all) != "" {
		t.Errorf("%v, %v: %v", err, damage, all)
	}
	if err := errors.Join(s.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestConcurrently has many pods come and go, with readers among them.
func TestConcurrently(t *testing.T) {
	t.Parallel()
	d := newDisk()
	s := open(t, d)
	var all sync.WaitGroup
	for n := range 40 {
		all.Go(func() {
			a := numbered(n)
			for _, state := range []State{Attaching, Attached} {
				a.State = state
				sync, err := s.Put(a)
				if err != nil {
					t.Error(err)
					return
				}
				if err := sync(); err != nil {
					t.Error(err)
				}
			}
			if n%2 == 0 {
				if sync, err := s.Remove(a.ContainerID); err != nil || sync() != nil {
					t.Error(err)
				}
			}
			for _, other := range s.All() {
				_ = other.Plan.Interfaces[0].Name
			}
			_, _ = s.Get("sandbox001")
			if _, _, err := Read(filesOf(d), File); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got := open(t, d.crash(0)).All()
	if diff := differ(s.All(), got); diff != "" || len(got) != 20 {
		t.Errorf("%d: %s", len(got), diff)
	}
}

// TestCompaction: a file does not grow with pods that are gone.
func TestCompaction(t *testing.T) {
	t.Parallel()
	d := newDisk()
	s := open(t, d)
	keep(t, s, numbered(500))
	one, largest := d.size(), 0
	for n := range 3 * garbage / one {
		if _, err := s.Put(numbered(n % 100)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Remove(numbered(n % 100).ContainerID); err != nil {
			t.Fatal(err)
		}
		largest = max(largest, d.size())
	}
	if most := garbage + 4*one; largest > most || largest < garbage {
		t.Errorf("the file came to %d bytes, want more than %d and at most %d", largest, garbage, most)
	}
	if got := ids(s.All()); !slices.Equal(got, []string{"sandbox500"}) {
		t.Errorf("there are %v", got)
	}
	if err := s.compact(); err != nil || d.size() > 2*one {
		t.Errorf("written anew: %v, %d bytes", err, d.size())
	}
	if got := open(t, d.crash(0)).All(); differ([]Attachment{numbered(500)}, got) != "" {
		t.Errorf("after a crash: %v", ids(got))
	}
}

// TestCallersShareASync waits for many puts at once.
func TestCallersShareASync(t *testing.T) {
	t.Parallel()
	d := newDisk()
	s := open(t, d)
	var waits []func() error
	for n := range 50 {
		sync, err := s.Put(numbered(n))
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, sync)
	}
	for _, sync := range waits {
		if err := sync(); err != nil {
			t.Fatal(err)
		}
	}
	if d.syncs != 1 {
		t.Errorf("%d syncs for records that were all there before the first", d.syncs)
	}
}
