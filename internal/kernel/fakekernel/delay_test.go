package fakekernel_test

import (
	"errors"
	"io/fs"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
)

// takes returns how long something takes by the clock of a bubble.
func takes(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := rdmaKernel()
		c := k.RDMA()
		closeAtEnd(t, c)
		k.ChangeHCA(4, func(h *fakekernel.HCA) { h.Ports = hca().Ports })
		k.Delay(fakekernel.GetStatistics, 30*time.Second, 4)
		k.Delay(fakekernel.GetCounterMode, 3*time.Second)
		k.Delay(fakekernel.GetDevice, 5*time.Second, 0, 4)
		for _, tt := range []struct {
			what string
			want time.Duration
			ask  func() error
		}{
			{"statistics", 0, func() error { _, err := c.Statistics(0, 1); return err }},
			{"statistics of another", 30 * time.Second, func() error { _, err := c.Statistics(4, 1); return err }},
			{"a mode, of all", 3 * time.Second, func() error { _, err := c.CounterMode(4, 1); return err }},
			{"another request", 0, func() error { _, err := c.Port(4, 1); return err }},
			{"a device", 5 * time.Second, func() error { _, err := c.Device(4); return err }},
			{"all devices", 10 * time.Second, func() error { _, err := c.Devices(); return err }},
		} {
			got := takes(func() {
				if err := tt.ask(); err != nil {
					t.Errorf("%s: %v", tt.what, err)
				}
			})
			if got != tt.want {
				t.Errorf("%s took %v, want %v", tt.what, got, tt.want)
			}
		}
		k.Delay(fakekernel.GetStatistics, 0)
		if got := takes(func() { _, _ = c.Statistics(4, 1) }); got != 0 {
			t.Errorf("statistics took %v, want no time any more", got)
		}
	})
}

// TestDelayOfOne has requests about one device wait while others are answered,
// until the delay ends.
func TestDelayOfOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := rdmaKernel()
		k.ChangeHCA(4, func(h *fakekernel.HCA) { h.Ports = hca().Ports })
		k.Delay(fakekernel.GetStatistics, 30*time.Second, 4)
		blocked, free := k.RDMA(), k.RDMA()
		closeAtEnd(t, blocked, free)
		done := make(chan error)
		go func() {
			_, err := blocked.Statistics(4, 1)
			done <- err
		}()
		synctest.Wait()
		if got := k.Asked(fakekernel.GetStatistics); got != 1 {
			t.Errorf("asked %d times, want 1 that is not answered yet", got)
		}
		took := takes(func() {
			if _, err := free.Statistics(0, 1); err != nil {
				t.Error(err)
			}
			k.Change(func(f *fakekernel.Facts) { f.Links = nil })
			k.Delay(fakekernel.GetStatistics, 30*time.Second, 4, 5)
			synctest.Wait()
			select {
			case err := <-done:
				t.Errorf("answered before the delay ended: %v", err)
			default:
			}
			k.Delay(fakekernel.GetStatistics, 0)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		if took != 0 {
			t.Errorf("it took %v, want no time", took)
		}
	})
}

func TestCloseWhileDelayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := nicKernel()
		settings, err := k.Ethtool()
		if err != nil {
			t.Fatal(err)
		}
		links, rdma := k.Links(), k.RDMA()
		for _, r := range []fakekernel.Request{fakekernel.GetLink, fakekernel.GetSystem, fakekernel.GetPause} {
			k.Delay(r, time.Hour)
		}
		errs := make(chan error)
		go func() { _, err := links.Links(); errs <- err }()
		go func() { _, err := rdma.System(); errs <- err }()
		go func() { _, err := settings.Pause(2); errs <- err }()
		synctest.Wait()
		took := takes(func() {
			if err := errors.Join(links.Close(), rdma.Close(), settings.Close()); err != nil {
				t.Error(err)
			}
			for range 3 {
				expectErr(t, "request of a closed client", <-errs, fs.ErrClosed)
			}
		})
		if took != 0 {
			t.Errorf("closing took %v, want no time", took)
		}
	})
}

// TestDelayOfIoctl has an ioctl take its time, and a very short one pass.
func TestDelayOfIoctl(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := nicKernel()
		c := ethtoolOf(t, k)
		k.Delay(fakekernel.GetStats, 7*time.Second, 2)
		k.Delay(fakekernel.GetDriverInfo, time.Nanosecond)
		values := make([]uint64, 3)
		if got := takes(func() { check(t, "statistics", nil, c.Stats("eth0", values), nil) }); got != 7*time.Second {
			t.Errorf("statistics took %v, want 7s", got)
		}
		if _, err := c.DriverInfo("eth0"); err != nil {
			t.Error(err)
		}
	})
}

// TestConcurrent asks by several clients at a time while the facts change. The
// race detector and the answers say whether that goes well.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	k := rdmaKernel()
	k.ChangeNIC(2, func(n *fakekernel.NIC) { *n = *nic() })
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { askAll(t, k) })
	}
	for i := range 100 {
		k.ChangeHCA(0, func(h *fakekernel.HCA) {
			h.AddQP(rdmanl.QP{Number: uint32(1000 + i), Port: 1, Type: "RC", State: "RTS"})
		})
		k.ChangeHCA(0, func(h *fakekernel.HCA) { h.RemoveQP(uint32(1000 + i)) })
		k.ChangeNIC(2, func(n *fakekernel.NIC) { n.Pause = &ethtool.Pause{Rx: i%2 == 0} })
		k.Change(func(f *fakekernel.Facts) { f.Links[1].MTU = i })
		k.SendLink(rtnl.Link{Index: 2, Name: "eth0"}, false)
	}
	group.Wait()
}

func askAll(t *testing.T, k *fakekernel.Kernel) {
	t.Helper()
	links, rdma := k.Links(), k.RDMA()
	events := k.Subscribe(rtnl.Links)
	settings, err := k.Ethtool()
	if err != nil {
		t.Error(err)
		return
	}
	for range 50 {
		_, err1 := links.Links()
		_, err2 := links.VFs(2)
		_, err3 := rdma.Statistics(0, 1)
		_, err4 := rdma.QPCounters(0, 1)
		qps, err5 := rdma.QPs(0)
		_, err6 := settings.PauseStats(2)
		err7 := settings.Stats("eth0", make([]uint64, 3))
		if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil || len(qps) < 122 {
			t.Errorf("%d QPs: %v, want at least 122", len(qps), err)
		}
	}
	if err := errors.Join(links.Close(), rdma.Close(), settings.Close(), events.Close()); err != nil {
		t.Error(err)
	}
}
