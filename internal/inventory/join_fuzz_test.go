package inventory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/rtnl"
)

// TestJoinIgnoresOrder shuffles everything in the facts that sysfs and netlink
// have in no order of meaning: not the entries of a GID table, nor the
// addresses of one link, whose first is its primary one.
func TestJoinIgnoresOrder(t *testing.T) {
	t.Parallel()
	for _, name := range machines(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := machineFacts(t, name)
			want := encode(t, Join(facts, Options{}))
			for seed := range uint64(20) {
				shuffle(rand.New(rand.NewPCG(seed, 0)), facts)
				got := encode(t, Join(facts, Options{}))
				if diff := gocmp.Diff(string(want), string(got)); diff != "" {
					t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
				}
			}
		})
	}
}

func shuffle(r *rand.Rand, f *Facts) {
	shuffleList(r, f.IB)
	for i := range f.IB {
		shuffleList(r, f.IB[i].Ports)
	}
	shuffleList(r, f.Chars)
	shuffleList(r, f.Netdevs)
	shuffleList(r, f.PCI)
	for i := range f.PCI {
		shuffleList(r, f.PCI[i].Auxiliary)
	}
	shuffleList(r, f.Netlink.RDMA)
	for i := range f.Netlink.RDMA {
		shuffleList(r, f.Netlink.RDMA[i].Ports)
	}
	shuffleList(r, f.Netlink.Links)
	shuffleList(r, f.Netlink.Elsewhere)
	place := map[int]int{}
	for i, l := range f.Netlink.Links {
		place[l.Index] = i
	}
	slices.SortStableFunc(f.Netlink.Addresses, func(a, b rtnl.Address) int {
		return cmp.Compare(place[a.LinkIndex], place[b.LinkIndex])
	})
}

func shuffleList[T any](r *rand.Rand, list []T) {
	r.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
}

// FuzzJoin mangles the facts of a machine. The bytes are a list of changes,
// each of a place in the facts (2 bytes) and what is done there (1 byte).
func FuzzJoin(f *testing.F) {
	var facts [][]byte
	for i, name := range machines(f) {
		m := machineFacts(f, name)
		facts = append(facts, encode(f, m))
		f.Add(byte(i), []byte(nil))
		f.Add(byte(i), []byte{0, 9, 1, 3, 1, 2, 1, 7, 3})
	}
	f.Fuzz(func(t *testing.T, machine byte, changes []byte) {
		mangled := new(Facts)
		if err := json.Unmarshal(facts[int(machine)%len(facts)], mangled); err != nil {
			t.Fatal(err)
		}
		mangle(mangled, changes)
		s := Join(mangled, Options{Rails: railsOf(changes)})
		checkSnapshot(t, s)
		if again := Join(mangled, Options{Rails: railsOf(changes)}); !reflect.DeepEqual(s, again) {
			t.Errorf("the same facts gave another snapshot (-first +second):\n%s", gocmp.Diff(string(encode(t, s)), string(encode(t, again))))
		}
	})
}

// railsOf gives half of the runs names of rails.
func railsOf(changes []byte) []string {
	if len(changes)%2 == 0 {
		return nil
	}
	return []string{"mlx5_1", "eth7", "mlx5_0", "bond0", "", "enp26s0np0"}
}

// checkSnapshot checks what holds for any facts.
func checkSnapshot(t *testing.T, s *Snapshot) {
	t.Helper()
	ids := map[string]bool{}
	rdma := map[string]bool{}
	for i := range s.Devices {
		d := &s.Devices[i]
		if ids[d.ID] {
			t.Errorf("two devices %q", d.ID)
		}
		ids[d.ID] = true
		if d.RDMA != nil && rdma[d.RDMA.Name] {
			t.Errorf("two RDMA devices %q", d.RDMA.Name)
		}
		if d.RDMA != nil {
			rdma[d.RDMA.Name] = true
			if !slices.IsSortedFunc(d.RDMA.Ports, func(a, b Port) int { return cmp.Compare(a.Number, b.Number) }) {
				t.Errorf("ports of %s are not sorted", d.RDMA.Name)
			}
		}
	}
	if !slices.IsSortedFunc(s.Devices, compareDevices) {
		t.Error("devices are not sorted")
	}
	gpus := map[string]bool{}
	for _, g := range s.GPUs {
		gpus[g.Address] = true
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Parent != "" && !ids[d.Parent] {
			t.Errorf("parent %q of %s is no device", d.Parent, d.ID)
		}
		for _, a := range d.GPUs {
			if !gpus[a.GPU] || a.Distance.rank() < 0 {
				t.Errorf("%s has %v, which is no GPU of the node", d.ID, a)
			}
		}
		if !slices.IsSortedFunc(d.GPUs, func(a, b Affinity) int { return cmp.Compare(a.Distance.rank(), b.Distance.rank()) }) {
			t.Errorf("GPUs of %s are not sorted by distance: %v", d.ID, d.GPUs)
		}
	}
	checkRoundTrip(t, s)
}

func checkRoundTrip(t *testing.T, s *Snapshot) {
	t.Helper()
	text := encode(t, s)
	var back Snapshot
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatalf("reading the snapshot back: %v", err)
	}
	if again := encode(t, &back); !bytes.Equal(text, again) {
		t.Errorf("JSON round trip (-first +second):\n%s", gocmp.Diff(string(text), string(again)))
	}
}

func encode(tb testing.TB, v any) []byte {
	tb.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// mangle applies changes to places anywhere in the facts.
func mangle(f *Facts, changes []byte) {
	var m mangler
	m.walk(reflect.ValueOf(f).Elem())
	for len(changes) >= 3 {
		place := m.places[(int(changes[0])<<8|int(changes[1]))%len(m.places)]
		m.change(place, changes[2])
		changes = changes[3:]
	}
}

type mangler struct {
	places  []reflect.Value
	strings []string
}

// walk collects the values that can be changed.
func (m *mangler) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				m.walk(field)
			}
		}
	case reflect.Slice:
		m.places = append(m.places, v)
		for i := range v.Len() {
			m.walk(v.Index(i))
		}
	case reflect.Pointer:
		m.places = append(m.places, v)
		if !v.IsNil() {
			m.walk(v.Elem())
		}
	case reflect.String:
		m.strings = append(m.strings, v.String())
		m.places = append(m.places, v)
	case reflect.Int, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float64, reflect.Bool, reflect.Map:
		m.places = append(m.places, v)
	}
}

// change does one of several things to a value.
func (m *mangler) change(v reflect.Value, how byte) {
	if how < 32 {
		v.SetZero()
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		changeSlice(v, how)
	case reflect.String:
		v.SetString(m.strings[int(how)*len(m.strings)/256]) // that of another place
	case reflect.Int:
		v.SetInt([]int64{-1, 1, 2, 3, math.MaxInt32, math.MinInt32}[int(how)%6])
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint([]uint64{1, 2, 0x0200, 0x020000, 0x030200, 0x15b3}[int(how)%6])
	case reflect.Bool:
		v.SetBool(!v.Bool())
	}
}

// changeSlice removes an element, doubles one or puts one in the place of
// another.
func changeSlice(v reflect.Value, how byte) {
	n := v.Len()
	if n == 0 {
		return
	}
	at, other := v.Index(int(how)%n), v.Index(int(how/3)%n)
	switch how % 3 {
	case 0:
		v.Set(reflect.AppendSlice(v.Slice3(0, int(how)%n, int(how)%n), v.Slice(int(how)%n+1, n)))
	case 1:
		v.Set(reflect.Append(v.Slice3(0, n, n), at))
	case 2:
		at.Set(other)
	}
}
