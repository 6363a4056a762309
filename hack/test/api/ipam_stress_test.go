package api

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/internal/ipam/holder"
)

// stress is nodes whose pods come and go while what gives them addresses is
// killed, again and again.
type stress struct {
	*Server
	*assigned
	namespace string // of pods
	prefix    string // of the names of pools
	pools     []holder.PoolRef
	nodes     []*stressNode
	done      chan struct{} // closed: no pod comes or goes any more
	idle      sync.WaitGroup
	// uncontrolled says that controllers die one after the other, so that pods may
	// wait for as long as that takes.
	uncontrolled atomic.Bool
}

// stressNode is a node with its agent, of which one life follows the other.
type stressNode struct {
	name, dir, namespaces string
	kubeconfig            string

	mu   sync.Mutex
	life *nodeProcess
	next chan struct{} // closed when the next life begins
}

func newStress(t *testing.T, s *Server, nodes, slots int, pools ...holder.PoolRef) (*stress, []*slot) {
	t.Helper()
	s.InstallAgents(t)
	st := &stress{Server: s, assigned: newAssigned(), namespace: metav1.NamespaceDefault, pools: pools, done: make(chan struct{})}
	seed := seed(t)
	var all []*slot
	for i := range nodes {
		name := fmt.Sprintf("node%d", i)
		if err := s.Create(t.Context(), NodeObject(name)); err != nil {
			t.Fatal(err)
		}
		n := &stressNode{
			name: name, dir: s.sub("journal-" + name), namespaces: s.sub("namespaces/" + name), kubeconfig: s.agentKubeconfig(t, name), next: make(chan struct{}),
		}
		st.nodes = append(st.nodes, n)
		for number := range slots {
			all = append(all, &slot{stress: st, node: n, number: number, random: rand.New(rand.NewPCG(seed, uint64(i*slots+number)))})
		}
	}
	t.Cleanup(func() {
		for _, n := range st.nodes {
			if life, _ := n.current(); life != nil {
				life.end()
			}
		}
		for _, slot := range all {
			if slot.pod != nil {
				_ = endNamespace(slot.namespace())
			}
		}
	})
	return st, all
}

// begin begins a life of the node's agent. The one before has ended.
func (n *stressNode) begin(t *testing.T, point KillPoint) *nodeProcess {
	t.Helper()
	life := startNode(t, nodeLife{
		Kubeconfig: n.kubeconfig, Node: n.name, BootID: "boot", Dir: n.dir, Namespaces: n.namespaces, KillPoint: point,
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.life = life
	close(n.next)
	n.next = make(chan struct{})
	return life
}

// current is the life that began last, and a channel that is closed when the
// next one does.
func (n *stressNode) current() (*nodeProcess, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life, n.next
}

// livingPods are the Pod objects that there are.
func (st *stress) livingPods(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := st.List(t.Context(), &list, client.InNamespace(st.namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
