package api

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/loopback"
)

// TestReplicas pauses the leader of two replicas until the other has taken over
// and gone on. Webhooks are answered; and the first, when it wakes up, writes
// nothing and ends.
//
// The API server finds the webhooks through what stands for a Service: a
// balancer that sends new connections to replicas that answer their readiness
// probes, and leaves those that are open to a paused replica open, as
// kube-proxy does. How long admission takes to recover is logged.
func TestReplicas(t *testing.T) {
	s := Exclusive(t)
	s.Configure(t, usual)
	s.namespace(t, "spiderpool", nil)
	url := loopback.Address(t)
	names := []string{"replica-a", "replica-b"}
	var replicas []*Process
	for _, name := range names {
		replicas = append(replicas, s.Spawn(t, Replica{Name: name, Elected: true}, "https://"+url))
	}
	only := newService(t, url, replicas...)
	for _, p := range replicas {
		p.AwaitReady(t)
	}
	s.AwaitWebhooks(t, url)

	for _, rail := range []int{1, 2, 3} {
		s.rail(t, rail)
	}
	leader := s.leader(t, names)
	paused, other := replicas[leader], replicas[1-leader]
	t.Logf("%s leads and is paused", names[leader])
	only(leader) // the connection that the API server keeps is to the leader: the worst case
	s.AwaitWebhooks(t, url)
	only(-1)
	before := s.transitions(t)
	begin := time.Now()
	paused.Pause(t)
	goOn := sync.OnceFunc(func() { paused.Signal(t, syscall.SIGCONT) })
	defer goOn() // it could not end otherwise

	s.AwaitWebhooks(t, url)
	t.Logf("webhooks are answered again %.0f s after the pause began", time.Since(begin).Seconds())
	s.remove(t, "gpu1-macvlan") // drift, which only a leader repairs
	s.awaitNetwork(t, "gpu1-macvlan", "ens1")
	t.Logf("the other repaired what drifted %.0f s after the pause began", time.Since(begin).Seconds())
	s.rail(t, 4)
	s.change(t, 2, "ens12")
	s.awaitNetwork(t, "gpu2-macvlan", "ens12")

	wake := time.Now()
	goOn()
	s.change(t, 3, "ens13")
	s.awaitNetwork(t, "gpu3-macvlan", "ens13")
	paused.AwaitEnd(t)
	t.Logf("%s ended %.0f s after it woke up: %v", names[leader], time.Since(wake).Seconds(), paused.err)
	other.Signal(t, syscall.SIGTERM)
	other.AwaitEnd(t) // whatever it would have written is written
	s.checkWoken(t, names[leader], wake)
	if now := s.transitions(t); now <= before {
		t.Errorf("the lease changed hands %d times, and %d times before the pause: nobody took over", now, before)
	}
	s.checkCounts(t, names)
}

// rail makes a network and waits for what comes of it.
func (s *Server) rail(t *testing.T, n int) {
	t.Helper()
	manifest := fmt.Sprintf(`
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {name: gpu%[1]d}
spec: {subnet: 172.16.%[1]d.0/24, ips: [172.16.%[1]d.1-172.16.%[1]d.200]}
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata: {name: gpu%[1]d-macvlan, namespace: spiderpool}
spec: {cniType: macvlan, macvlan: {master: [ens%[1]d], ippools: {ipv4: [gpu%[1]d]}}}
`, n)
	for _, o := range Objects(t, manifest) {
		s.retried(t, func() error { return client.IgnoreAlreadyExists(s.Create(t.Context(), o.DeepCopy())) })
	}
	s.awaitNetwork(t, fmt.Sprintf("gpu%d-macvlan", n), fmt.Sprintf("ens%d", n))
}

// retried does what may fail while webhooks are not answered.
func (s *Server) retried(t *testing.T, do func() error) {
	t.Helper()
	Eventually(t, func() string {
		if err := do(); err != nil {
			return err.Error()
		}
		return ""
	})
}

// change gives a network another master.
func (s *Server) change(t *testing.T, n int, master string) {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("spiderpool.spidernet.io/v2beta1")
	o.SetKind("SpiderMultusConfig")
	o.SetNamespace("spiderpool")
	o.SetName(fmt.Sprintf("gpu%d-macvlan", n))
	patch := fmt.Sprintf(`{"spec":{"macvlan":{"master":[%q]}}}`, master)
	s.retried(t, func() error { return s.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))) })
}

// remove deletes a NetworkAttachmentDefinition.
func (s *Server) remove(t *testing.T, name string) {
	t.Helper()
	nad := &cniv1.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: "spiderpool", Name: name}}
	s.retried(t, func() error { return s.Delete(t.Context(), nad) })
}

// awaitNetwork waits for a NetworkAttachmentDefinition on a master, and for the
// status of what it is made of.
func (s *Server) awaitNetwork(t *testing.T, name, master string) {
	t.Helper()
	Eventually(t, func() string {
		var nad cniv1.NetworkAttachmentDefinition
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: "spiderpool", Name: name}, &nad); err != nil {
			return err.Error()
		}
		if !strings.Contains(nad.Spec.Config, fmt.Sprintf("%q", master)) {
			return fmt.Sprintf("master %s in %s", master, nad.Spec.Config)
		}
		return ""
	})
}

// leader is the replica that renewed the Lease last.
func (s *Server) leader(t *testing.T, names []string) int {
	t.Helper()
	leads := -1
	for _, w := range s.Writes(t, "") {
		if !strings.HasPrefix(w.Object, "leases/"+Namespace+"/") || !w.Done() {
			continue
		}
		for i, name := range names {
			if slices.Contains(w.Groups, name) {
				leads = i
			}
		}
	}
	if leads < 0 {
		t.Fatal("no replica holds the Lease")
	}
	return leads
}

// checkWoken wants no write of a replica since it woke up, unless it leads
// again, and a Lease that the other holds.
func (s *Server) checkWoken(t *testing.T, paused string, since time.Time) {
	t.Helper()
	for _, w := range s.Writes(t, paused) {
		if w.Time.After(since) && w.Done() {
			t.Errorf("%s wrote after it lost its lease: %s", paused, w)
		}
	}
}

// transitions are how often the controllers' lease has changed hands.
func (s *Server) transitions(t *testing.T) (n int32) {
	t.Helper()
	var leases coordinationv1.LeaseList
	if err := s.List(t.Context(), &leases, client.InNamespace(Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases.Items {
		if lease.Spec.LeaseTransitions != nil {
			n += *lease.Spec.LeaseTransitions
		}
	}
	return n
}

// checkCounts wants no more writes of both replicas together than the test asked
// for.
func (s *Server) checkCounts(t *testing.T, names []string) {
	t.Helper()
	counts := Counts{}
	for _, name := range names {
		for what, n := range CountWrites(s.Writes(t, name)) {
			counts[what] += n
		}
	}
	t.Logf("writes of both:\n%s", printCounts(counts))
	for what, n := range counts {
		most := 1
		switch verb, object, _ := strings.Cut(what, " "); {
		case strings.HasPrefix(object, "leases/"), strings.HasPrefix(object, "events/"):
			continue
		case verb == "create" && strings.Contains(object, "/gpu1-macvlan"):
			most = 2 // it was deleted
		case strings.HasSuffix(object, "/status") && strings.Contains(object, "spidermultusconfigs"):
			most = 2 // changed once
		}
		if n > most {
			t.Errorf("%s: %d times, want at most %d", what, n, most)
		}
	}
}
