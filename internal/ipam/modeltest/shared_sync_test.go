package modeltest

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/holder"
)

// A gatedDisk syncs when it is told to, so that other callers of the same holder
// go on meanwhile. Interleavings of a world never do that: their threads are
// coroutines, and one that waits for another's sync would stop them all.
type gatedDisk struct {
	*disk

	mu   sync.Mutex
	gate chan error // the answer to one sync
}

func (d *gatedDisk) Append(name string, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.disk.Append(name, data)
}

func (d *gatedDisk) Truncate(name string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.disk.Truncate(name, size)
}

func (d *gatedDisk) Replace(name string, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.disk.Replace(name, data)
}

func (d *gatedDisk) Sync(name string) error {
	err := <-d.gate
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.lose(name)
		return err
	}
	return d.disk.Sync(name)
}

// letSync answers one caller that waits for the disk, if there is one.
func (d *gatedDisk) letSync(err error) {
	select {
	case d.gate <- err:
	default:
	}
	synctest.Wait()
}

// afterCrash is a copy of what a crash would leave.
func (d *gatedDisk) afterCrash() *disk {
	left := newDisk(d.w)
	for name, f := range d.files {
		left.files[name] = &file{slices.Clone(f.data), slices.Clone(f.durable)}
	}
	left.loseCache()
	return left
}

// crowd is many callers of one holder.
type crowd struct {
	t    *testing.T
	w    *world
	disk *gatedDisk
	h    *holder.Holder

	mu     sync.Mutex
	busy   int
	failed int
	has    map[types.UID]holder.Assignment // answered, and not being released
}

var crowdOptions = holder.Options{Node: "n", UID: "u", BootID: "b", Session: "s", Now: func() time.Time { return time.Unix(0, 0) }}

func newCrowd(t *testing.T, w *world) *crowd {
	t.Helper()
	c := &crowd{t: t, w: w, disk: &gatedDisk{disk: newDisk(w), gate: make(chan error)}, has: map[types.UID]holder.Assignment{}}
	h, err := holder.Open(c.disk, crowdOptions)
	if err != nil {
		t.Fatal(err)
	}
	c.h = h
	h.Occupied(nil)
	if err := h.Sync(t.Context(), leaseAPI{link{w: w, proc: &process{}}, "n"}); err != nil {
		t.Fatal(err)
	}
	lease := w.api.leases.live["n"].DeepCopy()
	lease.Status.NodeUID = "u"
	lease.Status.Pools = []v1alpha1.LeasedPool{{Pool: "p", Grants: []v1alpha1.Grant{{Epoch: 1, Addresses: []string{"10.0.0.1-10.0.0.4"}}}}}
	if lease, err = w.api.updateLeaseStatus(lease); err != nil {
		t.Fatal(err)
	}
	if err := h.Observe(lease); err != nil {
		t.Fatal(err)
	}
	return c
}

// call has one more caller.
func (c *crowd) call(do func() error) {
	c.busy++
	go func() {
		err := do()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.busy--
		if err != nil {
			c.failed++
		}
	}()
	synctest.Wait()
}

func (c *crowd) add(n int) {
	pool := holder.PoolRef{Name: "p", Subnet: netip.MustParsePrefix("10.0.0.0/24")}
	r := holder.Request{
		Key: holder.Key{PodUID: types.UID(fmt.Sprint(n)), Sandbox: "s"}, Pod: name("ns", fmt.Sprint(n)),
		NICs: []holder.NIC{{Interface: "net1", Choices: []holder.Choice{{Pools: []holder.PoolRef{pool}}}}},
	}
	c.call(func() error {
		a, err := c.h.Assign(r)
		if err != nil {
			c.h.Abandon(r.Key)
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, o := range c.has {
			if o.Addresses[0].Prefix == a.Addresses[0].Prefix {
				c.t.Errorf("%s has %v, and %s, too", a.Pod, a.Addresses, o.Pod)
			}
		}
		c.has[a.PodUID] = a
		return nil
	})
}

func (c *crowd) remove() {
	if len(c.has) == 0 {
		return
	}
	uids := sorted(c.has)
	a := c.has[uids[c.w.rng.IntN(len(uids))]]
	delete(c.has, a.PodUID)
	c.call(func() error {
		_, _, err := c.h.Release(a.Key, a.Sequence, nil)
		return err
	})
}

// check has the machine crash here, in a copy: what was answered is known.
func (c *crowd) check() {
	h, err := holder.Open(c.disk.afterCrash(), crowdOptions)
	if err != nil {
		c.t.Fatal(err)
	}
	known := h.Assignments()
	for _, a := range c.has {
		if !slices.ContainsFunc(known, func(o holder.Assignment) bool { return o.Key == a.Key && slices.Equal(places(o), places(a)) }) {
			c.t.Errorf("%v was answered to %s, and is forgotten", a.Addresses, a.Pod)
		}
	}
}

// TestCallersShareASync has callers of one holder come while others wait for the
// disk, which fails now and then.
func TestCallersShareASync(t *testing.T) {
	const seeds, steps = 100, 80
	most, failed, answered := 0, 0, 0
	for seed := range uint64(seeds) {
		w := bare(seed) // out of the bubble: its threads never begin
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, w)
			for i := range steps {
				switch n := c.w.rng.IntN(10); {
				case n < 4 && c.busy < 5:
					c.add(i)
				case n < 6 && c.busy < 5:
					c.remove()
				case n < 7:
					c.disk.letSync(errIO)
				default:
					c.disk.letSync(nil)
				}
				most = max(most, c.busy)
				c.check()
			}
			for c.busy > 0 {
				c.disk.letSync(nil)
			}
			c.check()
			failed, answered = failed+c.failed, answered+len(c.has)
		})
	}
	if most < 3 || failed == 0 || answered == 0 {
		t.Errorf("%d callers at once, %d of them failed, %d pods in the end", most, failed, answered)
	}
}
