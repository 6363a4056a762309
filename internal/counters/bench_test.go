package counters

import (
	"errors"
	"slices"
	"testing"

	"railhead/internal/inventory"
	"railhead/internal/versus"
)

// steady is an asker that says the same names each time, without a kernel.
type steady struct {
	names  []string
	values []uint64
}

func (s *steady) ask(Access) (names []string, values []uint64, err error) {
	for i := range s.values {
		s.values[i]++
	}
	return s.names, s.values, nil
}

// steadyReader reads a PF of mlx5 from askers that cost nothing.
func steadyReader() *Reader {
	d := &inventory.Device{
		Kind: inventory.PF, PCI: &inventory.PCI{Driver: "mlx5_core"},
		RDMA: &inventory.RDMA{Name: "mlx5_0", Ports: []inventory.Port{{Number: 1, LinkLayer: inventory.Ethernet, Netdev: "eth0"}}},
	}
	r := NewReader(d)
	r.groups, r.others = nil, nil
	for _, s := range []source{portFiles, statistics, driverStats} {
		names := keysOf(s, r.driver)
		if s == portFiles {
			names = keysOf(s, "")
		}
		place := r.atPort(&d.RDMA.Ports[0])
		r.add(group{asker: &steady{names, make([]uint64, len(names))}, source: s, kernel: fromFiles, tiers: tiersOf(Traffic, Errors, Slow), port: place, device: place})
	}
	return r
}

// TestReadAllocatesNothing reads what costs nothing to ask for.
func TestReadAllocatesNothing(t *testing.T) {
	r := steadyReader()
	samples := readAll(t, r, nil)
	if allocs := testing.AllocsPerRun(50, func() { samples = readAll(t, r, samples[:0]) }); allocs > 0 {
		t.Errorf("%v allocations for %d samples", allocs, len(samples))
	}
}

// TestFilesAndIoctlAllocateNothing reads the traffic of a PF by files and that
// of a VF by ioctl, through all layers down to the (simulated) kernel.
func TestFilesAndIoctlAllocateNothing(t *testing.T) {
	for _, kind := range []inventory.Kind{inventory.PF, inventory.VF} {
		r := newRig(t, "mlx5_core", kind, inventory.Ethernet)
		reader, a := NewReader(&r.device), r.access()
		var samples []Sample
		read := func() {
			var err error
			if samples, err = reader.Read(Traffic, a, samples[:0]); err != nil {
				t.Fatal(err)
			}
		}
		read()
		if allocs := testing.AllocsPerRun(50, read); allocs > 0 {
			t.Errorf("%s: %v allocations for %d samples", kind, allocs, len(samples))
		}
	}
}

func readAll(tb testing.TB, r *Reader, samples []Sample) []Sample {
	tb.Helper()
	for tier := range Tiers {
		var err error
		if samples, err = r.Read(tier, Access{}, samples); err != nil {
			tb.Fatal(err)
		}
	}
	return samples
}

// BenchmarkTiers reads tiers of a PF of mlx5 through all layers down to the
// simulated kernel, beside the questions alone, of which nothing is made.
func BenchmarkTiers(b *testing.B) {
	r := newRig(b, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.equip()
	reader, a := NewReader(&r.device), r.access()
	for tier, name := range []string{"traffic", "errors", "slow"} {
		b.Run(name, func(b *testing.B) {
			var samples []Sample
			read := func() (err error) {
				samples, err = reader.Read(Tier(tier), a, samples[:0])
				return err
			}
			versus.Floor(b, read, func() error { return reader.ask(Tier(tier), a) })
			b.ReportMetric(float64(len(samples)), "samples")
		})
	}
}

// ask asks what Read does, and drops the answers.
func (r *Reader) ask(tier Tier, a Access) error {
	var errs []error
	for _, g := range r.groups {
		if g.tiers.has(tier) && g.rest == 0 {
			_, _, err := g.ask(a)
			errs = append(errs, err)
		}
	}
	for i := range r.others {
		if q := &r.others[i]; q.tier == tier && q.rest == 0 {
			_, err := q.ask(r, a, nil)
			errs = append(errs, err)
		}
	}
	return errors.Join(slices.DeleteFunc(errs, isLacking)...)
}
