package api

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/internal/ipam/holder"
)

// TestLastAddress has as many pods as a pool has addresses, on several nodes at
// once, and all get one. Then they end, and the same addresses are given to as
// many pods on the other nodes.
//
//nolint:tparallel // the second part needs the machine for itself
func TestLastAddress(t *testing.T) {
	t.Parallel()
	s := Shared(t)
	t.Run("21 of roce-shared-macvlan on 2 nodes", func(t *testing.T) {
		manifest, err := os.ReadFile("testdata/acceptance/roce-shared-macvlan/network.yaml")
		if err != nil {
			t.Fatal(err)
		}
		s.MustApply(t, string(manifest))
		pool := holder.PoolRef{Name: "v4-81", Subnet: netip.MustParsePrefix("172.81.0.0/16")}
		s.giveAll(t, pool, 2, 21)
	})
	t.Run("200 on 100 nodes", func(t *testing.T) {
		s.giveAll(t, s.smallPool(t, 100, 200), 100, 200)
	})
}

// giveAll gives each address of a pool to a pod: spread over all nodes, then over
// the first half of them, and then over the second half.
func (s *Server) giveAll(t *testing.T, pool holder.PoolRef, nodes, addresses int) {
	t.Helper()
	var agents []*Agent
	for i := range nodes {
		agents = append(agents, s.startAgent(t, fmt.Sprintf("%s-node%d", pool.Name, i)))
	}
	for _, round := range []struct {
		name   string
		agents []*Agent
	}{
		{"all", agents}, {"first", agents[:nodes/2]}, {"second", agents[nodes/2:]},
	} {
		t.Run(round.name+" nodes", func(t *testing.T) {
			pods := s.startPods(t, pool.Name+"-"+round.name, round.agents, addresses, pool)
			if got := countDifferent(pods); got != addresses {
				t.Errorf("%d pods have %d different addresses, the pool has %d", len(pods), got, addresses)
			}
			s.endPods(t, pods)
		})
	}
}

// startAgent makes a node and runs its agent.
func (s *Server) startAgent(t *testing.T, node string) *Agent {
	t.Helper()
	s.InstallAgents(t)
	if err := s.Create(t.Context(), NodeObject(node)); err != nil {
		t.Fatal(err)
	}
	return RunAgent(t, node, t.TempDir(), s.AgentConfig(node), nil)
}

// givenPod is a pod that has addresses.
type givenPod struct {
	*corev1.Pod
	agent *Agent
	given holder.Assignment
}

// startPods starts pods at once, in turn on the nodes, with an address of each
// pool. They have all of Patience: addresses may have to come from many nodes.
func (s *Server) startPods(t *testing.T, prefix string, agents []*Agent, n int, pools ...holder.PoolRef) []givenPod {
	t.Helper()
	pods := make([]givenPod, n)
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for i := range pods {
		group.Go(func() (err error) {
			agent := agents[i%len(agents)]
			pod := podOn(agent.Node, fmt.Sprintf("%s-%d", prefix, i))
			if err := s.Create(ctx, pod); err != nil {
				return err
			}
			pods[i] = givenPod{Pod: pod, agent: agent}
			pods[i].given, _, err = agent.Insist(ctx, PodRequest(pod.Name, pod.UID, pools...))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return pods
}

// endPods ends pods at once.
func (s *Server) endPods(t *testing.T, pods []givenPod) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	for _, p := range pods {
		group.Go(func() error {
			if err := p.agent.End(ctx, p.given); err != nil {
				return err
			}
			return s.Delete(ctx, p.Pod, client.GracePeriodSeconds(0))
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// podOn is a pod of a node.
func podOn(node, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
}

// countDifferent counts the addresses of pods.
func countDifferent(pods []givenPod) int {
	all := map[netip.Addr]bool{}
	for _, p := range pods {
		for _, a := range addressesOf(p.given) {
			all[a] = true
		}
	}
	return len(all)
}
