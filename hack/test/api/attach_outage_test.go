package api

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	corev1 "k8s.io/api/core/v1"

	"railhead/internal/kernel/kerneltest"
)

// attachedPod is a pod of the outage with what it was told.
type attachedPod struct {
	*podSandbox
	result *types100.Result
	rails  map[string]netip.Addr
}

// TestAttachOutage stops etcd and the API server, and kills the agent meanwhile.
// Pods end all the same, pods that the agent knows are attached, be it from the life
// before, and what is attached stays so. When the server is there again, it is told
// all that.
func TestAttachOutage(t *testing.T) {
	t.Parallel()
	Wanted(t)
	attachPrograms(t)
	kerneltest.NetNS(t, func() {
		if err := makeDefaultRoute(); err != nil {
			t.Fatal(err)
		}
		s := Own(t) // it is stopped
		s.Configure(t, usual)
		s.Control(t, Replica{})
		n := s.newAttachNode(t, "outage", 214, 40)
		n.start(t)
		r := n.runtime(t, n.awaitNetwork(t, "1.1.0"))
		n.warm(t)
		before := n.state(t)
		known, waiting, unknown := n.createPod(t, "known"), n.createPod(t, "waiting"), n.railsPod("unknown")
		first, second, third := n.attach(t, r, "first"), n.attach(t, r, "second"), n.attach(t, r, "third")
		n.awaitGrants(t, &Agent{Node: n.name}, attachRails*(3+4)) // with the reserve

		n.awaitKept(t, waiting)

		n.CrashServer(t)
		n.ends(t, r, first)
		late := n.attached(t, r, n.mustSandbox(t, known, 0))

		life, _ := n.current()
		life.kill(t)
		n.begin(t)
		n.awaitServed(t)
		n.again(t, r, second)
		n.again(t, r, late)
		n.ends(t, r, third)
		n.cannot(t, r, n.mustSandbox(t, unknown, 0))
		anew := n.attached(t, r, n.mustSandbox(t, waiting, 0))

		if life, _ = n.current(); !strings.Contains(life.log.String(), "they are as they were") {
			t.Error("the agent does not say that what it knows is old")
		}

		n.StartServer(t)
		n.caughtUp(t, late, second, anew)
		if err := n.Create(t.Context(), unknown); err != nil {
			t.Fatal(err)
		}
		last := n.attached(t, r, n.mustSandbox(t, unknown, 1))
		n.caughtUp(t, late, second, anew, last)
		for _, p := range []*attachedPod{late, second, anew, last} {
			n.ends(t, r, p)
		}
		for _, p := range []*attachedPod{first, second, third, late, anew, last} {
			n.deletePod(t, p.pod)
		}
		n.same(t, before)
		n.caughtUp(t)
	})
}

// awaitKept waits until the agent's disk has a pod.
func (n *attachNode) awaitKept(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	Eventually(t, func() string {
		kept, err := os.ReadFile(filepath.Join(n.attachments(), "cluster.jsonl"))
		if err != nil || !strings.Contains(string(kept), string(pod.UID)) {
			return fmt.Sprintf("pod %s on the node's disk, %v", pod.Name, err)
		}
		return ""
	})
}

// attach makes a pod and attaches it.
func (n *attachNode) attach(t *testing.T, r *containerRuntime, name string) *attachedPod {
	t.Helper()
	return n.attached(t, r, n.mustSandbox(t, n.createPod(t, name), 0))
}

// attached attaches a sandbox, and wants what was told to be there.
func (n *attachNode) attached(t *testing.T, r *containerRuntime, s *podSandbox) *attachedPod {
	t.Helper()
	result, err := r.add(t.Context(), s)
	if err != nil {
		t.Fatalf("ADD of %s: %v", s.id, err)
	}
	n.isAttached(t, s, result)
	_, found, err := inSandbox(s.path)
	if err != nil {
		t.Fatal(err)
	}
	rails, err := n.mustRails(found)
	if err != nil {
		t.Fatal(err)
	}
	return &attachedPod{s, result, rails}
}

// again has the runtime ask for what is attached, which stays as it is.
func (n *attachNode) again(t *testing.T, r *containerRuntime, p *attachedPod) {
	t.Helper()
	n.addAgain(t, r, p.podSandbox, p.result)
	if err := r.check(t.Context(), p.podSandbox); err != nil {
		t.Errorf("CHECK of %s: %v", p.id, err)
	}
	n.isAttached(t, p.podSandbox, p.result)
}

// ends takes a pod's networks away, twice.
func (n *attachNode) ends(t *testing.T, r *containerRuntime, p *attachedPod) {
	t.Helper()
	for range 2 {
		if err := r.del(t.Context(), p.podSandbox); err != nil {
			t.Errorf("DEL of %s: %v", p.id, err)
		}
	}
	if all, _, err := inSandbox(p.path); err != nil || len(all.Links) != 1 {
		t.Errorf("DEL of %s left %q, %v", p.id, all.Links, err)
	}
}

// cannot wants a pod that nobody can know to be refused for now, and nothing to be left of it.
func (n *attachNode) cannot(t *testing.T, r *containerRuntime, s *podSandbox) {
	t.Helper()
	_, err := r.add(t.Context(), s)
	var e *types.Error
	if !errors.As(err, &e) || e.Code != types.ErrTryAgainLater || !strings.Contains(e.Msg, s.pod.Name) {
		t.Errorf("ADD of a pod that nobody can know: %v, want one that names it, and code %d", err, types.ErrTryAgainLater)
	}
	t.Logf("a pod that nobody can know: %v", err)
	if err := r.del(t.Context(), s); err != nil {
		t.Errorf("DEL of %s: %v", s.id, err)
	}
	if all, _, err := inSandbox(s.path); err != nil || len(all.Links) != 1 {
		t.Errorf("%s has %q, %v", s.id, all.Links, err)
	}
}

// caughtUp waits until annotations, SpiderEndpoints, ledger and leases tell of
// these pods and of no others.
func (n *attachNode) caughtUp(t *testing.T, all ...*attachedPod) {
	t.Helper()
	rails := newAssigned()
	for _, p := range all {
		want := map[string]netip.Addr{"eth0": netip.MustParseAddr(p.result.IPs[0].Address.IP.String())}
		for name, a := range p.rails {
			want[name] = a
			rails.assign(t, p.pod.Name, a)
		}
		Eventually(t, func() string { return n.tells(t, p.pod.Name, want) })
	}
	n.agreeCluster(t, rails)
}
