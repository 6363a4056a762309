package ethtool_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/kerneltest"
)

// manyNetdevs returns a Client of a namespace with lo and a number of veth
// pairs, named va0, vb0, va1, ….
func manyNetdevs(b *testing.B, pairs int) *ethtool.Client {
	b.Helper()
	if os.Geteuid() != 0 {
		b.Skip("needs a network namespace: run as root")
	}
	netns := kerneltest.NewNetNS(b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := unix.Setns(int(netns.Fd()), unix.CLONE_NEWNET); err != nil {
			b.Error(err)
			return
		}
		for i := range pairs {
			kerneltest.AddVeth(b, fmt.Sprintf("va%d", i), fmt.Sprintf("vb%d", i))
		}
	}()
	<-done
	if b.Failed() {
		b.FailNow()
	}
	return dial(b, netns)
}

// BenchmarkSettings compares three dumps with three requests for each netdev,
// on a node with 8 NICs of 16 VFs.
func BenchmarkSettings(b *testing.B) {
	c := manyNetdevs(b, 68)
	all, err := c.SettingsAll()
	if err != nil {
		b.Fatal(err)
	}
	b.Run(fmt.Sprintf("dumps/netdevs=%d", len(all)), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.SettingsAll(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run(fmt.Sprintf("requests/netdevs=%d", len(all)), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for index := range all {
				if _, err := c.Settings(index); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkLiveStatistics reads a driver's statistics, with the kernel's part.
func BenchmarkLiveStatistics(b *testing.B) {
	c, s := manyNetdevs(b, 1), ethtool.NewStatistics("va0", nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Read(c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDial is what a sample of another namespace costs before it asks.
func BenchmarkDial(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		c, err := ethtool.Dial(nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
