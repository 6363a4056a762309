package inventory

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/versus"
)

// BenchmarkRead reads and joins a node of 8 PFs and 128 VFs, whose files are in
// memory. The netlink of the node is a fake that has its answers ready, so the
// kernel's own work for netlink is not in the figures, nor what a driver does
// to answer a file of sysfs. cpu-ms/op is the CPU time of the whole process,
// with the garbage collector. The floor of reading everything reads as many files
// by bare system calls.
func BenchmarkRead(b *testing.B) {
	n := newSimNode(b, simCards{pfs: 8, vfs: 16, gids: 256, others: 30})
	for i, f := range n.functions {
		if f.pf == nil { // with 18 GIDs of macvlans beside the default ones
			for k := range 9 {
				n.addMacvlan(f, address(i<<8+k))
			}
		}
	}
	facts, _ := n.read(nil, Changes{})
	facts, s := n.read(facts, Changes{}) // as a Watcher has them: a link without ethtool is asked once
	if len(s.Devices) != 136 || len(s.Problems) != 0 {
		b.Fatalf("%d devices, problems %v", len(s.Devices), s.Problems)
	}
	pf, vf := n.functions[0], n.functions[1]
	var uplinks, registration Changes
	for _, f := range n.functions {
		if f.pf == nil {
			uplinks.merge(linkChange(f.link))
		}
	}
	registration.merge(pathChange(vf.path + "/infiniband/" + vf.rdma))
	registration.merge(pathChange(vf.path + "/" + verbsClass))
	benchmarks := []struct {
		name    string
		changed Changes
	}{
		{"one PF changed", pathChange(pf.path + "/infiniband/" + pf.rdma)},
		{"one VF changed", pathChange(vf.path + "/infiniband/" + vf.rdma)},
		{"link of a PF changed", linkChange(pf.link)},
		{"link of a VF changed", linkChange(vf.link)},
		{"links of all PFs changed", uplinks},
		{"one VF registered anew", registration},
		{"nothing changed", Changes{}},
	}
	for _, bb := range benchmarks {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			reportCPU(b)
			for b.Loop() {
				n.read(facts, bb.changed)
			}
		})
	}
	b.Run("join", func(b *testing.B) {
		b.ReportAllocs()
		reportCPU(b)
		for b.Loop() {
			Join(facts, Options{})
		}
	})
	b.Run("everything", func(b *testing.B) {
		files, buf := n.filesRead(b), make([]byte, 4096)
		read := func() error { n.read(facts, everything()); return nil }
		versus.Floor(b, read, func() error {
			for _, name := range files {
				readBare(b, name, buf)
			}
			return nil
		})
		b.ReportMetric(float64(len(files)), "files")
	})
}

// reportCPU reports the CPU time of the process from here to the end of the
// benchmark.
func reportCPU(b *testing.B) {
	b.Helper()
	start := cpuSeconds(b)
	b.Cleanup(func() {
		b.ReportMetric((cpuSeconds(b)-start)*1000/float64(b.N), "cpu-ms/op")
	})
}

func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// filesRead lists the files of the simulated node that a Reader reads, by
// their real paths: those of PCI functions of interest, RDMA devices, netdevs
// and character devices.
func (n *simNode) filesRead(b *testing.B) []string {
	b.Helper()
	var files []string
	err := filepath.WalkDir(n.file("sys/devices"), func(name string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && filepath.Base(name)[:1] != "o" {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return files
}

// readBare reads a file by the fewest system calls that there are.
func readBare(b *testing.B, name string, buf []byte) {
	b.Helper()
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := unix.Read(fd, buf); err != nil {
		b.Fatal(err)
	}
	if err := unix.Close(fd); err != nil {
		b.Fatal(err)
	}
}
