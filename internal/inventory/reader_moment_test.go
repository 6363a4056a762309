package inventory

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// moments counts what a Reader reads of sysfs, and lets the node take a step
// before each of those readings from the first on that is named.
type moments struct {
	count int
	first int // from 1
	gap   int // readings between a step and the next
	steps []func()
}

func (m *moments) next(string) {
	m.count++
	if m.count >= m.first && (m.count-m.first)%m.gap == 0 && len(m.steps) > 0 {
		m.steps[0]()
		m.steps = m.steps[1:]
	}
}

// all is one step that takes many.
func all(steps []func()) func() {
	return func() {
		for _, step := range steps {
			step()
		}
	}
}

// TestReadAtEachMoment has a VF go, come or both at each of the moments between
// two readings of sysfs, at once or step by step. A snapshot then must show it
// as it was, or not at all, and the next one, read after the kernel's events,
// must show what is there. Nobody else may be touched.
func TestReadAtEachMoment(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		isAway bool // to begin with
		gap    int
		steps  func(n *simNode, f *simFunction) []func()
	}{
		{name: "goes at once", gap: 1, steps: func(n *simNode, f *simFunction) []func() {
			return []func(){all(n.departure(f))}
		}},
		{name: "goes step by step", gap: 1, steps: (*simNode).departure},
		{name: "goes slowly", gap: 7, steps: (*simNode).departure},
		{name: "comes at once", isAway: true, gap: 1, steps: func(n *simNode, f *simFunction) []func() {
			return []func(){all(n.returning(f))}
		}},
		{name: "comes step by step", isAway: true, gap: 1, steps: (*simNode).returning},
		{name: "comes slowly", isAway: true, gap: 7, steps: (*simNode).returning},
		{name: "goes and is back at once", gap: 1, steps: func(n *simNode, f *simFunction) []func() {
			return []func(){all(append(n.departure(f), n.returning(f)...))}
		}},
		{name: "goes and is back at the next reading", gap: 1, steps: func(n *simNode, f *simFunction) []func() {
			return []func(){all(n.departure(f)), all(n.returning(f))}
		}},
		{name: "goes and is back a few readings later", gap: 5, steps: func(n *simNode, f *simFunction) []func() {
			return []func(){all(n.departure(f)), all(n.returning(f))}
		}},
		{name: "goes and comes step by step", gap: 1, steps: func(n *simNode, f *simFunction) []func() {
			return append(n.departure(f), n.returning(f)...)
		}},
		{name: "comes and goes step by step", isAway: true, gap: 1, steps: func(n *simNode, f *simFunction) []func() {
			return append(n.returning(f), n.departure(f)...)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := &moments{gap: tt.gap}
			n := newSimNode(t, simCards{pfs: 1, vfs: 1})
			n.reader.fs = n.reader.fs.Before(m.next)
			n.addSoftware("rxe0", n.functions[0])
			f := n.functions[1]
			f.gidLen = 3 // after the next move; each entry is a moment
			n.move(f)
			n.move(f)
			_, want := n.read(nil, Changes{})
			if d, ok := want.Device("rxe0"); !ok || d.Kind != Virtual || len(want.Devices) != 3 {
				t.Fatalf("rxe0 is %+v of %d devices, want a virtual one of 3", d, len(want.Devices))
			}
			for first, isOver := 1, false; !isOver; first++ {
				if f.isHere == tt.isAway {
					n.move(f)
				}
				m.steps, m.first, m.count = tt.steps(n, f), first, 0
				facts, got := n.read(nil, Changes{})
				isOver = m.count < first
				checkMoment(t, want, got, f.id)
				all(m.steps)()
				m.steps = nil
				_, got = n.read(facts, eventsOf(f))
				if diff := n.check(got); diff != "" {
					t.Errorf("after the events (-fresh +changed):\n%s", diff)
				}
				if t.Failed() {
					t.Fatalf("at reading %d of %d", first, m.count)
				}
			}
		})
	}
}

// returning is the arrival of devices that were here before.
func (n *simNode) returning(f *simFunction) []func() {
	return append([]func(){func() { n.removeChars(f) }}, n.arrival(f)...)
}

// eventsOf are those of devices that come and go.
func eventsOf(f *simFunction) Changes {
	changed := linkChange(f.link)
	for _, below := range []string{"/net/" + f.netdev, "/infiniband/" + f.rdma, "/" + verbsClass, "/" + madClass} {
		changed.merge(pathChange(f.path + below))
	}
	return changed
}

// checkMoment wants all devices as they were, but that the restless one may lack
// its RDMA device, its netdev or both, and its port what the netdev tells.
func checkMoment(t *testing.T, want, got *Snapshot, restless string) {
	t.Helper()
	if diff := diff(t, withoutDevices(want, restless), withoutDevices(got, restless)); diff != "" {
		t.Errorf("the others (-want +got):\n%s", diff)
	}
	w, _ := want.Device(restless)
	g, ok := got.Device(restless)
	if !ok || g.RDMA == nil {
		return
	}
	if diff := cmp.Diff(rdmaAlone(w), rdmaAlone(g), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("the restless one (-want +got):\n%s", diff)
	}
}

// rdmaAlone is an RDMA device without what its netdev and its character devices
// tell, which come and go by themselves, and without its registration.
func rdmaAlone(d *Device) RDMA {
	r := *d.RDMA
	r.Index, r.Protocol, r.CharDevices = nil, "", nil
	r.Ports = slices.Clone(r.Ports)
	for i := range r.Ports {
		p := &r.Ports[i]
		p.Netdev, p.MTU, p.MaxMTU, p.RDMAMTU, p.MaxGigabits = "", 0, 0, 0, 0
		p.Gigabits, p.Lanes, p.Speed = 0, 0, ""
	}
	return r
}
