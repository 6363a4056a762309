package holder_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/journal"
	"railhead/internal/versus"
)

const rails = 8

// railed is a holder with so many free addresses on each of 8 rails.
func railed(b *testing.B, disk journal.Disk, free int) *holder.Holder {
	b.Helper()
	h, err := holder.Open(disk, holder.Options{Node: "node1", UID: "uid1", BootID: "boot", Session: "s", Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	h.Occupied(nil)
	api := &server{}
	if err := h.Sync(b.Context(), api); err != nil {
		b.Fatal(err)
	}
	for i := range rails {
		first := rail(i).Addr().Next()
		last := first
		for range free - 1 {
			last = last.Next()
		}
		api.lease.Status.Pools = append(api.lease.Status.Pools, v1alpha1.LeasedPool{
			Pool:   "rail" + strconv.Itoa(i),
			Grants: []v1alpha1.Grant{{Epoch: 1, Addresses: []string{first.String() + "-" + last.String()}}},
		})
	}
	api.answer()
	if err := h.Observe(api.lease); err != nil {
		b.Fatal(err)
	}
	return h
}

func rail(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i + 1), 0, 0}), 16)
}

func railRequest(pod int) holder.Request {
	name := fmt.Sprintf("%08d-3f2a-4c5e-9d3b-6a1f0c2b7e55", pod)
	r := holder.Request{Key: holder.Key{PodUID: types.UID(name), Sandbox: name}, Pod: types.NamespacedName{Namespace: "jobs", Name: "worker-" + strconv.Itoa(pod)}}
	for i := range rails {
		r.NICs = append(r.NICs, holder.NIC{Interface: "net" + strconv.Itoa(i), Choices: []holder.Choice{
			{Pools: []holder.PoolRef{{Name: "rail" + strconv.Itoa(i), Subnet: rail(i)}}},
		}})
	}
	return r
}

// atOnce has so many callers do something, each once, and returns when all did.
func atOnce(callers int, do func(caller int) error) error {
	errs := make([]error, callers)
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() { errs[i] = do(i) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// BenchmarkAssign gives pods addresses on 8 rails and takes them back, all
// callers at once, on a real disk. The floor appends the very bytes that this
// wrote of each pod: by itself, callers sync each for itself, else once for all
// of them. x-floor is CPU time, x-wall the time until all were answered.
func BenchmarkAssign(b *testing.B) {
	for _, callers := range []int{1, 10, 100} {
		for _, shared := range []bool{false, true} {
			b.Run(fmt.Sprintf("callers=%d/floor-shares=%t", callers, shared), func(b *testing.B) {
				benchAssign(b, callers, shared)
			})
		}
	}
}

func benchAssign(b *testing.B, callers int, shared bool) {
	b.Helper()
	disk, floor := realDisk(b), realDisk(b)
	h := railed(b, disk, 256)
	var requests []holder.Request
	for i := range callers {
		requests = append(requests, railRequest(i))
	}
	bothWays := func() error {
		return errors.Join(
			atOnce(callers, func(i int) error { _, err := h.Assign(requests[i]); return err }),
			atOnce(callers, func(i int) error { _, _, err := h.Release(requests[i].Key, 0, nil); return err }))
	}
	assigned, released := linesOf(b, disk, bothWays)
	var ours, theirs stopwatch
	versus.Floor(b, ours.around(bothWays), theirs.around(func() error {
		return errors.Join(appended(floor, assigned, callers, shared), appended(floor, released, callers, shared))
	}))
	b.ReportMetric(ours.mean()/1e3/float64(callers), "ours-wall-us/pod")
	b.ReportMetric(ours.mean()/theirs.mean(), "x-wall")
}

// linesOf is the last line that an assignment and a release wrote, each.
func linesOf(b *testing.B, disk journal.Disk, do func() error) (assigned, released []byte) {
	b.Helper()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	data, err := disk.Read(journalFile)
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		switch {
		case bytes.Contains(line, []byte(`{"assigned":`)):
			assigned = line
		case bytes.Contains(line, []byte(`{"released":`)):
			released = line
		}
	}
	return assigned, released
}

// appended has callers put a line on a disk.
func appended(disk journal.Disk, line []byte, callers int, shared bool) error {
	err := atOnce(callers, func(int) error {
		if err := disk.Append("floor", line); err != nil || shared {
			return err
		}
		return disk.Sync("floor")
	})
	if shared {
		err = errors.Join(err, disk.Sync("floor"))
	}
	return err
}

func realDisk(b *testing.B) journal.Disk {
	b.Helper()
	disk, err := journal.OS(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = disk.Close() })
	return disk
}

// stopwatch is how long something took, ever.
type stopwatch struct {
	took time.Duration
	runs int
}

func (s *stopwatch) around(do func() error) func() error {
	return func() error {
		began := time.Now()
		err := do()
		s.took += time.Since(began)
		s.runs++
		return err
	}
}

// mean is in nanoseconds.
func (s *stopwatch) mean() float64 { return float64(s.took.Nanoseconds()) / float64(s.runs) }

// BenchmarkMemory is all of an assignment and its release but the disk, with
// more or less free. The floor makes JSON of the assignment.
func BenchmarkMemory(b *testing.B) {
	for _, free := range []int{32, 4096} {
		b.Run(fmt.Sprintf("free=%d", free), func(b *testing.B) {
			h := railed(b, noDisk{}, free)
			r := railRequest(1)
			a, err := h.Assign(r)
			if err != nil {
				b.Fatal(err)
			}
			floor := json.NewEncoder(io.Discard)
			versus.Floor(b, func() error {
				if _, _, err := h.Release(r.Key, 0, nil); err != nil {
					return err
				}
				_, err := h.Assign(r)
				return err
			}, func() error { return floor.Encode(&a) })
		})
	}
}

// BenchmarkCompaction writes a journal of so many pods anew: for so long nobody is
// given anything. The floor replaces a file by the same bytes.
func BenchmarkCompaction(b *testing.B) {
	for _, pods := range []int{100, 1000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			disk, floor := &full{Disk: realDisk(b)}, realDisk(b)
			h := railed(b, disk, 1024)
			for i := range pods {
				if _, err := h.Assign(railRequest(i)); err != nil {
					b.Fatal(err)
				}
			}
			last := railRequest(pods)
			var replaced []byte
			var ours, theirs stopwatch
			versus.Floor(b, ours.around(func() error {
				if _, err := h.Assign(last); err != nil {
					return err
				}
				disk.isFull = true // the release is not journaled, so the journal is written anew
				_, _, _ = h.Release(last.Key, 0, nil)
				disk.isFull = false
				return nil
			}), theirs.around(func() error {
				if replaced == nil {
					replaced, _ = disk.Read(journalFile)
				}
				return floor.Replace("floor", replaced)
			}))
			b.ReportMetric(ours.mean()/1e6, "ours-wall-ms")
			b.ReportMetric(ours.mean()/theirs.mean(), "x-wall")
			b.ReportMetric(float64(len(replaced)), "journal-B")
		})
	}
}

// full is a disk that may be full.
type full struct {
	journal.Disk

	isFull bool
}

func (d *full) Append(name string, data []byte) error {
	if d.isFull {
		return errFull
	}
	return d.Disk.Append(name, data)
}

var errFull = errors.New("no space left")

const journalFile = "addresses.journal"

// noDisk keeps nothing.
type noDisk struct{}

func (noDisk) Read(string) ([]byte, error)  { return nil, nil }
func (noDisk) Append(string, []byte) error  { return nil }
func (noDisk) Sync(string) error            { return nil }
func (noDisk) Truncate(string, int64) error { return nil }
func (noDisk) Replace(string, []byte) error { return nil }
