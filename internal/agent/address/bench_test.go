package address

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/journal"
	"railhead/internal/versus"
)

// rails are the pools of a node with eight rails.
func rails() (names []string, sizes []int) {
	for i := range 8 {
		names, sizes = append(names, fmt.Sprintf("rail%d", i)), append(sizes, 250)
	}
	return names, sizes
}

// newBenchService runs a service with eight pools and its journal on a disk,
// whose API server goes away once the node has 40 addresses of each in reserve,
// and returns a pod that asks for one of each.
func newBenchService(b *testing.B) (*Service, *fixture, holder.Request) {
	b.Helper()
	names, sizes := rails()
	f := newFixture(newController(40, sizes...))
	disk, err := journal.OS(filepath.Join(b.TempDir(), "journal"))
	if err != nil {
		b.Fatal(err)
	}
	s, err := New(Config{NodeName: "n1", Kubernetes: f.api.Config(), Disk: disk, BootID: "boot-1", InUse: f.inUse})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(ctx)
	}()
	b.Cleanup(func() {
		cancel()
		<-ended
	})
	request := f.pod("a", names...)
	assign(b, s, request)
	return s, f, request
}

func assign(b *testing.B, s *Service, request holder.Request) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := s.Assign(ctx, request); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAssign gives a pod addresses of eight rails out of the reserve and
// takes them back, beside putting two records of that size on the disk.
func BenchmarkAssign(b *testing.B) {
	s, f, request := newBenchService(b)
	f.api.Leave()
	disk, err := journal.OS(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	record := bytes.Repeat([]byte("x"), 1200)
	ours := func() error {
		if err := s.Release(b.Context(), request.Key, 0, nil); err != nil {
			return err
		}
		_, err := s.Assign(b.Context(), request)
		return err
	}
	versus.Floor(b, ours, func() error {
		for range 2 {
			if err := disk.Append("records", record); err != nil {
				return err
			}
			if err := disk.Sync("records"); err != nil {
				return err
			}
		}
		return nil
	})
}

// BenchmarkKept is what a service keeps in memory for 100 pods with eight rails.
func BenchmarkKept(b *testing.B) {
	before := heap()
	s, f, request := newBenchService(b)
	for i := range 99 {
		request.PodUID, request.Pod.Name = request.PodUID+"x", fmt.Sprintf("pod-%d", i)
		assign(b, s, request)
	}
	for count := 1; count > 0; count, _ = s.publish.lag(time.Now()) {
		runtime.Gosched()
	}
	f.api.Forget()
	for b.Loop() {
		b.ReportMetric(float64(heap()-before), "kept-B")
	}
	runtime.KeepAlive(s)
}

// heap is the size of all that is reachable.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
