package ipambench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/hack/test/api"
	"railhead/internal/ipam/holder"
)

// podsAtOnce is how many pods a node starts at once.
const podsAtOnce = 16

// apiWrites is how many writes of the set-up go on at once.
const apiWrites = 32

// fleet is nodes with their agents, the controller, and what both exchange with
// the API server.
type fleet struct {
	*api.Server
	agents     []*api.Agent
	agentSide  *Traffic
	controller *Traffic
}

// newFleet starts the controller, and agents of that many nodes.
func newFleet(t *testing.T, s *api.Server, nodes int) *fleet {
	t.Helper()
	f := &fleet{Server: s, agentSide: &Traffic{}, controller: &Traffic{}}
	s.Control(t, api.Replica{Connect: f.controller.Client})
	s.InstallAgents(t)
	for i := range nodes {
		name := fmt.Sprintf("node%d", i)
		if err := s.Create(t.Context(), api.NodeObject(name)); err != nil {
			t.Fatal(err)
		}
		f.agents = append(f.agents, api.RunAgent(t, name, t.TempDir(), f.agentSide.Client(s.AgentConfig(name)), nil))
	}
	for _, a := range f.agents {
		if err := a.AwaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// pods makes Pod objects, that many on each of some nodes, and returns their
// requests for an address of each pool, by node.
func (f *fleet) pods(t *testing.T, prefix string, agents []*api.Agent, each int, pools []holder.PoolRef) [][]holder.Request {
	t.Helper()
	all := make([][]holder.Request, len(agents))
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(apiWrites)
	for i, a := range agents {
		all[i] = make([]holder.Request, each)
		for k := range each {
			group.Go(func() error {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%s-%d-%d", prefix, i, k)},
					Spec:       corev1.PodSpec{NodeName: a.Node, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
				}
				err := f.Create(ctx, pod)
				all[i][k] = api.PodRequest(pod.Name, pod.UID, pools...)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return all
}

// started is what came of starting pods.
type started struct {
	took time.Duration // until the last pod was answered
	// published is until each pod had its SpiderEndpoint, where that was awaited.
	published time.Duration
	cpu       time.Duration   // of this process: agents, controller and what measures
	each      []time.Duration // until a pod was answered, in order
	given     [][]holder.Assignment
	// refused is how often a pod waited for a minute in vain, and asked again
	refused int
	// what the agents and the controller exchanged with the API server until the last answer
	agentSide, controller Sum
}

// start starts pods on all nodes at once.
func (f *fleet) start(t *testing.T, agents []*api.Agent, requests [][]holder.Request) started {
	t.Helper()
	var (
		mu     sync.Mutex
		result = started{given: make([][]holder.Assignment, len(agents))}
	)
	ours, theirs := f.agentSide.Sum(), f.controller.Sum()
	cpu, began := cpuTime(t), time.Now()
	group, ctx := errgroup.WithContext(t.Context())
	for i, a := range agents {
		node, ctx := errgroup.WithContext(ctx)
		node.SetLimit(podsAtOnce)
		group.Go(func() error {
			for _, r := range requests[i] {
				node.Go(func() error {
					begin := time.Now()
					given, refused, err := a.Insist(ctx, r)
					took := time.Since(begin)
					mu.Lock()
					defer mu.Unlock()
					result.each = append(result.each, took)
					result.given[i] = append(result.given[i], given)
					result.refused += refused
					return err
				})
			}
			return node.Wait()
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	result.took, result.cpu = time.Since(began), cpuTime(t)-cpu
	result.agentSide, result.controller = f.agentSide.Sum().Since(ours), f.controller.Sum().Since(theirs)
	slices.SortFunc(result.each, cmp.Compare)
	return result
}

// end ends all pods that were started, and deletes their objects.
func (f *fleet) end(t *testing.T, agents []*api.Agent, s started) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(apiWrites)
	for i, a := range agents {
		for _, given := range s.given[i] {
			group.Go(func() error {
				if err := a.End(ctx, given); err != nil {
					return err
				}
				return f.deletePod(ctx, given.Pod)
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func (f *fleet) deletePod(ctx context.Context, name types.NamespacedName) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	return f.Delete(ctx, pod, client.GracePeriodSeconds(0))
}

// addresses is how many addresses were given.
func (s *started) addresses() int {
	n := 0
	for _, node := range s.given {
		for _, given := range node {
			n += len(given.Addresses)
		}
	}
	return n
}

func (s *started) perSecond() float64 { return float64(s.addresses()) / s.took.Seconds() }

// publishedPerSecond counts until addresses are published, too.
func (s *started) publishedPerSecond() float64 {
	return float64(s.addresses()) / s.published.Seconds()
}

// startAll starts pods on all nodes at once, and waits until each is published.
func (f *fleet) startAll(t *testing.T, agents []*api.Agent, requests [][]holder.Request) started {
	t.Helper()
	began, pods := time.Now(), 0
	for _, r := range requests {
		pods += len(r)
	}
	result := f.start(t, agents, requests)
	f.awaitEndpoints(t, pods)
	result.published = time.Since(began)
	return result
}

// perWrite is how many addresses a write of a ledger granted. It fails the test
// where no write was counted: then what counts them is broken.
func (s *started) perWrite(t *testing.T) float64 {
	t.Helper()
	writes := s.controller.Count("PUT", "poolledgers") + s.controller.Count("POST", "poolledgers")
	if writes == 0 {
		t.Errorf("%d addresses were granted, and no write of a ledger was counted", s.addresses())
		return math.NaN()
	}
	return float64(s.addresses()) / float64(writes)
}

// cpuTime is the CPU time that this process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
