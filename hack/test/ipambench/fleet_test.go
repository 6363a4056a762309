package ipambench

import (
	"cmp"
	"context"
	"fmt"
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
	subnets    int // that have been given to pools of rails
}

// newFleet starts the controller, and agents of that many nodes.
func newFleet(b *testing.B, s *api.Server, nodes int) *fleet {
	b.Helper()
	f := &fleet{Server: s, agentSide: &Traffic{}, controller: &Traffic{}}
	s.Control(b, api.Replica{Connect: f.controller.Client})
	s.InstallAgents(b)
	for i := range nodes {
		name := fmt.Sprintf("node%d", i)
		if err := s.Create(b.Context(), api.NodeObject(name)); err != nil {
			b.Fatal(err)
		}
		f.agents = append(f.agents, api.RunAgent(b, name, b.TempDir(), f.agentSide.Client(s.AgentConfig(name)), nil))
	}
	for _, a := range f.agents {
		if err := a.AwaitReady(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return f
}

// pods makes Pod objects, that many on each of some nodes, and returns their
// requests for an address of each pool, by node.
func (f *fleet) pods(b *testing.B, prefix string, agents []*api.Agent, each int, pools []holder.PoolRef) [][]holder.Request {
	b.Helper()
	all := make([][]holder.Request, len(agents))
	group, ctx := errgroup.WithContext(b.Context())
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
		b.Fatal(err)
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
	// agentSideAll is what the agents did until each pod was published.
	agentSideAll Sum
}

// start starts pods on all nodes at once.
func (f *fleet) start(b *testing.B, agents []*api.Agent, requests [][]holder.Request) started {
	b.Helper()
	var (
		mu     sync.Mutex
		result = started{given: make([][]holder.Assignment, len(agents))}
	)
	ours, theirs := f.agentSide.Sum(), f.controller.Sum()
	cpu, began := cpuTime(b), time.Now()
	group, ctx := errgroup.WithContext(b.Context())
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
		b.Fatal(err)
	}
	result.took, result.cpu = time.Since(began), cpuTime(b)-cpu
	result.agentSide, result.controller = f.agentSide.Sum().Since(ours), f.controller.Sum().Since(theirs)
	slices.SortFunc(result.each, cmp.Compare)
	return result
}

// end ends all pods that were started, and deletes their objects.
func (f *fleet) end(b *testing.B, agents []*api.Agent, s started) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
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
		b.Fatal(err)
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
func (f *fleet) startAll(b *testing.B, agents []*api.Agent, requests [][]holder.Request) started {
	b.Helper()
	began, ours, pods := time.Now(), f.agentSide.Sum(), 0
	for _, r := range requests {
		pods += len(r)
	}
	result := f.start(b, agents, requests)
	f.awaitEndpoints(b, pods)
	result.published, result.agentSideAll = time.Since(began), f.agentSide.Sum().Since(ours)
	return result
}

// perWrite is how many addresses a write of a ledger granted. It fails the
// benchmark where no write was counted: then what counts them is broken.
func (s *started) perWrite(b *testing.B) float64 {
	b.Helper()
	writes := s.controller.Count("PUT", "poolledgers") + s.controller.Count("POST", "poolledgers")
	if writes == 0 {
		b.Fatalf("%d addresses were granted, and no write of a ledger was counted", s.addresses())
	}
	return float64(s.addresses()) / float64(writes)
}

// perPod is how many requests the agents made for a pod until all were published.
func (s *started) perPod(b *testing.B) float64 {
	b.Helper()
	pods := 0
	for _, node := range s.given {
		pods += len(node)
	}
	if published := s.agentSideAll.Count("POST", "spiderendpoints"); published < pods {
		b.Fatalf("%d pods are published, and the requests that were counted are %v", pods, s.agentSideAll.Requests)
	}
	return float64(s.agentSideAll.Count()) / float64(pods)
}

// cpuTime is the CPU time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
