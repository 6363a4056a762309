package holder_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
	"railhead/internal/ipam/holder"
)

// TestRandomLives runs nodes through random lives: pods come and go, the
// controller grants, takes and recalls, answers are lost, the disk fails, the
// agent starts anew with what the disk kept.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			l := newLife(t, seed)
			for range 300 {
				l.step()
			}
			l.settle()
		})
	}
}

// life is a node, and what a naive model knows of it.
type life struct {
	*node
	disk *disk
	rng  *rand.Rand
	// had is what was answered and not released since.
	had  map[types.UID]holder.Assignment
	last int // of grants
}

func newLife(t *testing.T, seed uint64) *life {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 6))
	d := newDisk(rng)
	l := &life{disk: d, rng: rng, had: map[types.UID]holder.Assignment{}}
	l.node = nodeOn(t, d)
	d.fail = int(seed%3) * 4
	return l
}

func (l *life) step() {
	switch l.rng.IntN(12) {
	case 0, 1, 2, 3:
		l.add()
	case 4, 5:
		l.del()
	case 6:
		l.controller()
	case 7, 8:
		_ = l.Sync(l.t.Context(), l.api)
	case 9:
		_ = l.Observe(l.api.lease.DeepCopy())
	case 10:
		l.weather()
	case 11:
		if l.rng.IntN(4) == 0 {
			l.restart()
		}
	}
	l.check()
}

// add assigns to a pod, in a new sandbox now and then.
func (l *life) add() {
	pod := fmt.Sprint("p", l.rng.IntN(8))
	shapes := [][][]string{{{"a"}}, {{"a"}, {"b"}}, {{"a", "b"}, {"a"}}, {{"b"}, {"six"}}}
	r := request(pod, fmt.Sprint("s", l.rng.IntN(2)), shapes[l.rng.IntN(len(shapes))]...)
	r.Settle = l.rng.IntN(3) == 0
	if l.rng.IntN(4) == 0 {
		r.Identity = "StatefulSet/ns/" + pod + "/0"
	}
	before, had := l.had[r.PodUID]
	a, err := l.Assign(r)
	if err != nil {
		if _, ok := errors.AsType[*holder.ShortError](err); !ok && !errors.Is(err, holder.ErrDisk) && !errors.Is(err, holder.ErrNotReady) {
			l.t.Fatalf("assign: %v", err)
		}
		return
	}
	if had && before.Sandbox == a.Sandbox && strings.Join(addresses(before), " ") != strings.Join(addresses(a), " ") {
		l.t.Fatalf("pod %s had %v, and for the same sandbox gets %v", pod, addresses(before), addresses(a))
	}
	if !had || before.Sandbox != a.Sandbox {
		l.allowed(a)
	}
	l.had[r.PodUID] = a
}

// allowed checks a new assignment against the lease: what it says is the newest
// there is, and the node may have seen less.
func (l *life) allowed(a holder.Assignment) {
	for _, given := range a.Addresses {
		for _, r := range l.spec().Returns {
			set, _ := ipam.ParseRanges(r.Addresses)
			if r.Pool == given.Pool && r.Epoch == given.Epoch && set.Contains(given.Prefix.Addr()) {
				l.t.Fatalf("pod %s got %s, which the lease gives back", a.Pod, given.Prefix)
			}
		}
		g := l.grantOf(given.Pool, given.Prefix.Addr())
		if g != nil && g.Identity != "" && g.Identity != a.Identity {
			l.t.Fatalf("pod %s got %s, which is pinned to %s", a.Pod, given.Prefix, g.Identity)
		}
		if g == nil {
			l.t.Fatalf("pod %s got %s, which is not the node's", a.Pod, given.Prefix)
		}
	}
}

func (l *life) grantOf(pool string, addr netip.Addr) *v1alpha1.Grant {
	p := l.api.pool(pool)
	for i := range p.Grants {
		if set, _ := ipam.ParseRanges(p.Grants[i].Addresses); set.Contains(addr) {
			return &p.Grants[i]
		}
	}
	return nil
}

func (l *life) del() {
	for _, a := range l.Assignments() {
		if l.rng.IntN(3) > 0 {
			continue
		}
		got, freed, _ := l.Release(a.Key, 0, nil)
		if !freed || got.Sequence != a.Sequence {
			l.t.Fatalf("release of %v: %t, %v", a, freed, got)
		}
		delete(l.had, a.PodUID)
		return
	}
}

// controller takes what is given back and grants some.
func (l *life) controller() {
	l.api.take()
	names := []string{"a", "b", "six"}
	name := names[l.rng.IntN(3)]
	p := l.api.pool(name)
	p.Recall, p.Reserve = int64(l.rng.IntN(3)), int64(l.rng.IntN(3))
	p.Short = []string{"", "all are held"}[l.rng.IntN(2)]
	identity := ""
	for _, pin := range l.spec().Pins {
		if l.rng.IntN(2) == 0 {
			identity = pin.Identity
		}
	}
	// An address is granted again, under a new epoch, once it is taken.
	for range 20 {
		l.last = (l.last + 1) % 40
		addr := subnets[name].Addr()
		for range l.last + 1 {
			addr = addr.Next()
		}
		if l.grantOf(name, addr) == nil && !l.said(name, addr) {
			l.api.grant(name, identity, addr.String())
			return
		}
	}
}

// said says whether the lease gives an address back (R4).
func (l *life) said(pool string, addr netip.Addr) bool {
	for _, r := range l.spec().Returns {
		if set, _ := ipam.ParseRanges(r.Addresses); r.Pool == pool && set.Contains(addr) {
			return true
		}
	}
	return false
}

// weather is the clock and the network.
func (l *life) weather() {
	switch l.rng.IntN(3) {
	case 0:
		l.now = l.now.Add(time.Duration(l.rng.IntN(30)-10) * time.Second)
	case 1:
		l.api.lost = apierrors.NewTimeoutError("no answer", 1)
	case 2:
		l.api.fail = apierrors.NewInternalError(errors.New("down"))
	}
}

// restart starts the agent anew on what the disk kept. What was answered is
// still there; with a journal that is of no use, the kernel and what was published
// say what pods have.
func (l *life) restart() {
	l.disk.crash()
	fail := l.disk.fail
	l.disk.fail = 0
	l.start()
	if l.Ready() != nil { // right only if nothing was ever answered
		l.Occupied(nil)
	}
	l.disk.fail = fail
	have := map[types.UID]holder.Assignment{}
	for _, a := range l.Assignments() {
		have[a.PodUID] = a
	}
	for uid, a := range l.had {
		if now, ok := have[uid]; !ok || strings.Join(addresses(now), " ") != strings.Join(addresses(a), " ") {
			l.t.Fatalf("pod %s had %v and after a restart %v", a.Pod, addresses(a), addresses(now))
		}
	}
}

// check is what holds at any time.
func (l *life) check() {
	used := map[string]string{}
	for _, a := range l.Assignments() {
		for _, given := range a.Addresses {
			key := given.Pool + " " + given.Prefix.String()
			if used[key] != "" {
				l.t.Fatalf("%s is of pod %s and of pod %s", key, used[key], a.Pod.Name)
			}
			used[key] = a.Pod.Name
			if l.grantOf(given.Pool, given.Prefix.Addr()) == nil {
				l.t.Fatalf("pod %s has %s, which was taken from the node", a.Pod, key)
			}
		}
	}
}

// settle ends all pods and has everything go back.
func (l *life) settle() {
	l.disk.fail = 0
	l.api.lost, l.api.fail = nil, nil
	for _, a := range l.Assignments() {
		if _, _, err := l.Release(a.Key, 0, nil); err != nil {
			l.t.Fatal(err)
		}
	}
	for i := range 8 {
		l.Abandon(holder.Key{PodUID: types.UID(fmt.Sprint("p", i))})
	}
	for range 6 {
		l.sync()
		l.api.take()
		for i := range l.api.lease.Status.Pools {
			p := &l.api.lease.Status.Pools[i]
			p.Reserve, p.Recall = 0, 100
		}
		l.api.answer()
		l.see()
		l.now = l.now.Add(time.Minute)
	}
	for _, p := range l.Stats().Pools {
		if p.Granted > 0 || p.Returning > 0 || p.Used > 0 {
			l.t.Errorf("addresses stay behind: %+v; the lease gives back %v", p, l.spec().Returns)
		}
	}
}
