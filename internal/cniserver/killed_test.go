package cniserver

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/attach"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// death is when an agent dies: after it has changed so much of the kernel it asks
// for nothing any more.
type death struct {
	after int
	dead  chan struct{} // closed then
	end   chan struct{} // to be closed: nobody looks any more

	mu    sync.Mutex
	count int
}

func newDeath(after int) *death {
	return &death{after: after, dead: make(chan struct{}), end: make(chan struct{})}
}

// ask is called for each request. A dead agent waits for its end.
func (d *death) ask(m netlink.Message) error {
	d.mu.Lock()
	if d.count < d.after || d.count == d.after && isRead(m) {
		if !isRead(m) {
			d.count++
		}
		d.mu.Unlock()
		return nil
	}
	if d.count == d.after {
		d.count++
		close(d.dead)
	}
	d.mu.Unlock()
	<-d.end
	return unix.EIO
}

// live has it not die any more.
func (d *death) live() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.after = math.MaxInt
}

// isRead tells RTM_GET… by the place that it has among the requests of a kind.
func isRead(m netlink.Message) bool { return m.Header.Type%4 == unix.RTM_GETLINK%4 }

// attacher is that of an agent that will die.
func (d *death) attacher(t *testing.T) *attach.Attacher {
	t.Helper()
	a, err := attach.New(attach.Config{Dial: func(config *rtnl.Config) (*rtnl.Client, error) {
		conn, err := kerneltest.Relay(t, config.NetNS, d.ask)
		if err != nil {
			return nil, err
		}
		return rtnl.New(conn), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// copied is what a process finds that starts now.
func (d *memoryDisk) copied() *memoryDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := map[string][]byte{}
	for name, data := range d.files {
		files[name] = slices.Clone(data)
	}
	return &memoryDisk{files: files}
}

// deviceAndRail is a pod that has a netdev of the node, with an address of the
// node's, and a macvlan beside it; the node has rules and routes to both. If the
// pod's namespace alone is looked at, only the macvlan goes.
func (w *world) deviceAndRail() {
	w.must(w.node, rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 110, Prefix: netip.MustParsePrefix("192.0.2.1/24")}})
	w.cluster.nad("gpu1", strings.Replace(railConfig(0), `"type":"macvlan","master":"`+rail(0)+`","mode":"bridge"`, `"type":"host-device","device":"`+rail(0)+`"`, 1))
	w.cluster.pod("train", map[string]string{cniv1.AnnotationNetworks: "ai/gpu1,ai/gpu2"})
}

// TestKilled has an agent die after each change that it makes to the kernel for a
// pod, in turn. The next one finds the record, which was on its way to the disk
// before the first, and leaves the node and the pod as before.
func TestKilled(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.deviceAndRail()
		s := w.sandbox("box1", "train")
		before := w.snapshot(s)
		deaths := 0
		for ; w.die(s, deaths); deaths++ {
			w.awaitUp()
			if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
				t.Errorf("died after %d changes (-before +after):\n%s", deaths, diff)
			}
			if w.checkNothingLeft(); t.Failed() {
				t.FailNow()
			}
		}
		if deaths < 20 {
			t.Errorf("died %d times: want once for each change", deaths)
		}
		w.ok(s, cnicall.Check)
		w.ok(s, cnicall.Del)
	})
}

// die has an agent die while it attaches a pod, and another one take its place. It
// returns false where the first was done before.
func (w *world) die(s *box, after int) bool {
	w.t.Helper()
	w.stop()
	d := newDeath(after)
	w.extend = func(c *Config) { c.Attacher = d.attacher(w.t) }
	w.start()
	w.extend = nil
	server, stop := w.server, w.stop
	answers := make(chan cnicall.Answer, 1)
	go func() { answers <- server.Handle(context.Background(), s.request(cnicall.Add)) }()
	select {
	case answer := <-answers:
		if answer.Error != nil {
			w.t.Fatalf("the agent lived, and answered %v", answer.Error)
		}
		d.live()
		return false
	case <-d.dead:
	}
	w.disk = w.disk.copied()
	w.start()
	want := []string{"ai/train box1: it was half attached when the agent ended"}
	if found := w.found(); !slices.Equal(found, want) {
		w.t.Errorf("died after %d changes: found %q, want %q", after, found, want)
	}
	w.rest()
	close(d.end)
	<-answers
	stop()
	return true
}

// TestUnsynced has the disk take records, and then say that they are not on it: a
// pod that has all its interfaces is not attached, and all is taken away.
func TestUnsynced(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.deviceAndRail()
		s := w.sandbox("box1", "train")
		before := w.snapshot(s)
		var isWhole atomic.Bool
		w.disk.unsynced(func() error {
			for range 12000 { // or ADD was refused for another reason, which it says
				links, err := s.client.Links()
				isWhole.Store(err == nil && len(links) >= 4) // lo, eth0, net1 and net2
				if err != nil || isWhole.Load() {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			return syscall.EIO
		})
		w.refused(s, cnicall.Add, cnicall.CodeTryAgain, "ai/train", "record", "input/output error")
		if !isWhole.Load() {
			t.Error("the pod never had all its interfaces")
		}
		w.disk.unsynced(nil)
		w.rest()
		w.awaitUp()
		if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
			t.Errorf("left behind (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
		w.ok(s, cnicall.Add)
		w.ok(s, cnicall.Del)
	})
}
