package api

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attachStorm has pods with eight rails come and go, several at once, while their
// node's agent is killed.
type attachStorm struct {
	*attachNode
	r            *containerRuntime
	rails, eth0s *assigned
	slots        []*attachSlot
	cycles       atomic.Int64  // ADD and DEL of a pod that are done
	waiting      atomic.Int64  // pods that live until the agent was killed
	killed       chan struct{} // closed after the last kill
	over         chan struct{}

	mu   sync.Mutex
	said map[string]int // reasons why calls failed, and how often
}

func newAttachStorm(n *attachNode, r *containerRuntime, slots int, seed uint64) *attachStorm {
	st := &attachStorm{
		attachNode: n, r: r, rails: newAssigned(), eth0s: newAssigned(), killed: make(chan struct{}), over: make(chan struct{}), said: map[string]int{},
	}
	for number := range slots {
		st.slots = append(st.slots, &attachSlot{attachStorm: st, number: number, random: rand.New(rand.NewPCG(seed, uint64(number)))})
	}
	return st
}

// attachSlot is what one pod after the other has on the node.
type attachSlot struct {
	*attachStorm
	number int
	random *rand.Rand

	pods    int
	sandbox *podSandbox // of the pod that is there; nil: none
	found   map[string]netip.Addr
	eth0    netip.Addr
}

// runPods has pods come and go until the storm is over. The last one stays.
func (s *attachSlot) runPods(t *testing.T) {
	t.Helper()
	for s.start(t) {
		s.live()
		select {
		case <-s.over:
			return
		default:
		}
		if !s.end(t) {
			return
		}
		s.cycles.Add(1)
	}
}

// live lets the pod live for a while, or, one of four, until the agent was killed.
func (s *attachSlot) live() {
	if s.random.IntN(4) > 0 {
		timer := time.NewTimer(time.Duration(s.random.IntN(400)) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-s.over:
		case <-timer.C:
		}
		return
	}
	_, killed := s.current()
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	select {
	case <-s.killed:
	case <-killed:
	}
}

// start starts a pod, as a kubelet does: where ADD fails it calls DEL and makes
// another sandbox. It is false if that did not work and never will.
func (s *attachSlot) start(t *testing.T) bool {
	t.Helper()
	s.pods++
	pod := s.railsPod(fmt.Sprintf("slot%d-%d", s.number, s.pods))
	if err := s.Create(context.Background(), pod); err != nil {
		t.Errorf("create a pod: %v", err)
		return false
	}
	began := time.Now()
	for number := 0; ; number++ {
		var err error
		if s.sandbox, err = s.attachNode.sandbox(pod, number); err != nil {
			t.Error(err)
			return false
		}
		result, err := s.r.add(context.Background(), s.sandbox)
		if err == nil {
			return s.attached(t, result)
		}
		s.note("ADD", err)
		if bad := clear(err); bad != nil {
			t.Errorf("ADD of %s: %v", s.sandbox.id, bad)
		}
		if time.Since(began) > Patience {
			t.Errorf("%s is not attached after %d attempts: %v", pod.Name, number+1, err)
			return false
		}
		if !s.leave(t) {
			return false
		}
	}
}

// attached compares what there is with what was told.
func (s *attachSlot) attached(t *testing.T, result *types100.Result) bool {
	t.Helper()
	all, found, err := inSandbox(s.sandbox.path)
	if err != nil {
		t.Error(err)
		return false
	}
	s.found, err = s.mustRails(found)
	if err == nil {
		err = s.hasRails(all, s.found)
	}
	if err != nil {
		t.Errorf("%s: %v", s.sandbox.id, err)
		return false
	}
	s.eth0 = netip.MustParseAddr(result.IPs[0].Address.IP.String())
	if len(found["eth0"]) != 1 || found["eth0"][0] != s.eth0 {
		t.Errorf("%s was told %s, and eth0 has %v", s.sandbox.id, s.eth0, found["eth0"])
	}
	s.eth0s.assign(t, s.sandbox.pod.Name, s.eth0)
	for _, a := range s.found {
		s.rails.assign(t, s.sandbox.pod.Name, a)
	}
	return true
}

// end ends the pod of the slot.
func (s *attachSlot) end(t *testing.T) bool {
	t.Helper()
	s.rails.unassign(s.sandbox.pod.Name)
	s.eth0s.unassign(s.sandbox.pod.Name)
	pod := s.sandbox.pod
	if !s.leave(t) {
		return false
	}
	if err := s.Delete(context.Background(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Errorf("delete pod %s: %v", pod.Name, err)
	}
	return true
}

// leave calls DEL until that has worked, sometimes once more, and ends the
// sandbox's namespace, sometimes before that.
func (s *attachSlot) leave(t *testing.T) bool {
	t.Helper()
	times, early := 1+s.random.IntN(4)/3, s.random.IntN(4) == 0
	gone := func() bool {
		if err := endNamespace(s.sandbox.path); err != nil {
			t.Error(err)
			return false
		}
		return true
	}
	if early && !gone() {
		return false
	}
	for range times {
		if !s.del(t) {
			return false
		}
	}
	if !early && !gone() {
		return false
	}
	s.sandbox = nil
	return true
}

// del calls DEL until an agent has done it.
func (s *attachSlot) del(t *testing.T) bool {
	t.Helper()
	for began := time.Now(); ; sleep(context.Background(), 20*time.Millisecond) {
		err := s.r.del(context.Background(), s.sandbox)
		if err == nil {
			return true
		}
		s.note("DEL", err)
		if bad := clear(err); bad != nil || time.Since(began) > Patience {
			t.Errorf("DEL of %s: %v, %v", s.sandbox.id, err, bad)
			return false
		}
	}
}
