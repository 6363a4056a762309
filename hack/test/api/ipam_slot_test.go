package api

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/internal/ipam/holder"
)

// waitsFor is how long a pod waits for addresses at a time. There are more pods than
// addresses, so that some always wait; what there is for one that waits for all of
// Patience while there is a controller is lost.
const waitsFor = 5 * time.Second

// slot is what one pod after the other has on a node.
type slot struct {
	*stress
	node   *stressNode
	number int
	random *rand.Rand

	pod     *corev1.Pod // nil: none
	sandbox int
	given   holder.Assignment
}

// runPods has pods come and go on a slot until the test says done. Every second
// slot keeps its pod now and then until the node's agent was killed.
func (s *slot) runPods(t *testing.T) {
	t.Helper()
	defer s.idle.Done()
	for {
		if s.pod == nil && !s.start(t) {
			return
		}
		_, next := s.node.current()
		if s.number%2 == 1 && s.random.IntN(2) == 0 {
			select {
			case <-next:
			case <-s.done:
			}
		}
		if s.isDone() || !s.end(t) {
			return
		}
	}
}

func (s *slot) namespace() string { return filepath.Join(s.node.namespaces, s.pod.Name) }

func (s *slot) order() order {
	r := PodRequest(s.pod.Name, s.pod.UID, s.pools...)
	r.Sandbox = fmt.Sprintf("%s-%d", s.pod.Name, s.sandbox)
	return order{Key: r.Key, Pod: r.Pod, NICs: r.NICs, NetNS: s.namespace(), Within: waitsFor}
}

func (s *slot) isDone() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// start starts a pod. It is false if that did not work and never will.
func (s *slot) start(t *testing.T) bool {
	t.Helper()
	s.sandbox = 0
	s.pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: fmt.Sprintf("%s-%d-", s.node.name, s.number)},
		Spec:       corev1.PodSpec{NodeName: s.node.name, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	if err := s.Create(context.Background(), s.pod); err != nil {
		t.Errorf("create a pod: %v", err)
		return false
	}
	if err := makeNamespace(s.namespace()); err != nil {
		t.Error(err)
		return false
	}
	for began := time.Now(); ; {
		a, err := s.ask(t, s.order())
		switch {
		case errors.Is(err, errNoAgent):
			t.Errorf("%s gets no addresses: %v", s.pod.Name, err)
			return false
		case err == nil && a.Error == "":
			s.given = a.Assignment
			s.assign(t, s.pod.Name, addressesOf(a.Assignment)...)
			s.check(t)
			return true
		case err == nil:
			if s.isDone() { // nobody ends any more for whose addresses it could wait
				s.end(t)
				return false
			}
			if s.uncontrolled.Load() {
				began = time.Now()
			}
			if time.Since(began) > Patience {
				t.Errorf("%s gets no addresses: %s", s.pod.Name, a.Error)
				return false
			}
		case errors.Is(err, errDied) && s.random.IntN(2) == 0:
			// The kubelet ends the sandbox of which it does not know whether it has a
			// network, and makes another one.
			if !s.release(t, 0) {
				return false
			}
			s.sandbox++
		}
	}
}

// check compares what the pod was told with what its namespace has.
func (s *slot) check(t *testing.T) {
	t.Helper()
	found, err := addressesIn(s.namespace())
	if err != nil {
		t.Error(err)
	}
	if len(s.given.Addresses) != len(s.pools) || len(found) != len(s.pools) {
		t.Errorf("%s: given %v, its namespace has %v; want one of each of %d pools", s.pod.Name, s.given.Addresses, found, len(s.pools))
	}
	for _, a := range addressesOf(s.given) {
		if !slices.Contains(found, a) {
			t.Errorf("%s was given %s, and its namespace has %v", s.pod.Name, a, found)
		}
	}
}

// end ends the pod of the slot.
func (s *slot) end(t *testing.T) bool {
	t.Helper()
	s.unassign(s.pod.Name)
	sequence := s.given.Sequence
	s.given = holder.Assignment{}
	if s.random.IntN(4) == 0 {
		sequence = 0
	}
	if !s.release(t, sequence) {
		return false
	}
	if err := endNamespace(s.namespace()); err != nil {
		t.Error(err)
	}
	if err := s.Delete(context.Background(), s.pod, client.GracePeriodSeconds(0)); err != nil {
		t.Errorf("delete pod %s: %v", s.pod.Name, err)
	}
	s.pod = nil
	return true
}

// release releases what the sandbox has; an agent that died is asked again.
func (s *slot) release(t *testing.T, sequence uint64) bool {
	t.Helper()
	o := s.order()
	o.Release, o.Sequence = true, sequence
	for {
		a, err := s.ask(t, o)
		switch {
		case err == nil && a.Error == "":
			return true
		case err == nil:
			t.Errorf("release of %s: %s", s.pod.Name, a.Error)
			return false
		case errors.Is(err, errNoAgent):
			t.Errorf("release of %s: %v", s.pod.Name, err)
			return false
		}
	}
}

// errNoAgent is that a node has no agent that answers, and gets no other one.
var errNoAgent = errors.New("no agent of the node answers")

// ask asks the node's agent, or the next one if that has died.
func (s *slot) ask(t *testing.T, o order) (answer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*Patience, errNoAgent) // no life is longer than Patience
	defer cancel()
	life, next := s.node.current()
	if life != nil {
		select {
		case <-life.ended:
		default:
			return life.ask(ctx, o)
		}
	}
	select {
	case <-next:
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	life, _ = s.node.current()
	return life.ask(ctx, o)
}
