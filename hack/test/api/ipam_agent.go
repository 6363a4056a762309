package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"railhead/internal/agent/address"
	"railhead/internal/ipam/holder"
)

// Agent gives the pods of one node addresses, in the test's process: the
// service of the agent that is shipped, with its journal on the disk, and
// without a kernel.
type Agent struct {
	*address.Service
	Node string

	cancel context.CancelFunc
	ended  chan struct{}
	err    error

	mu    sync.Mutex
	inUse map[netip.Addr]string // what is in the namespaces of pods, were there any
}

// RunAgent runs the agent of a node until it is stopped, at the latest with the
// test. The Node object has to be there; dir is that of its journal.
func RunAgent(tb testing.TB, node, dir string, config *rest.Config, log *slog.Logger) *Agent {
	tb.Helper()
	a := &Agent{Node: node, ended: make(chan struct{}), inUse: map[netip.Addr]string{}}
	var err error
	a.Service, err = address.New(address.Config{
		NodeName: node, Kubernetes: config, Dir: dir, BootID: "boot-of-" + node, InUse: a.used, Logger: log,
	})
	if err != nil {
		tb.Fatal(err)
	}
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(a.ended)
		a.err = a.Run(ctx)
	}()
	tb.Cleanup(func() { a.Stop(tb) })
	return a
}

// Stop ends the agent; it may have ended already.
func (a *Agent) Stop(tb testing.TB) {
	tb.Helper()
	a.cancel()
	<-a.ended
	if a.err != nil && !errors.Is(a.err, context.Canceled) {
		tb.Errorf("agent of %s: %v", a.Node, a.err)
	}
}

func (a *Agent) used() (map[netip.Addr]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.inUse), nil
}

// Start gives a pod its addresses, as a CNI plugin would.
func (a *Agent) Start(ctx context.Context, r holder.Request) (holder.Assignment, error) {
	given, err := a.Assign(ctx, r)
	if err != nil {
		return given, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range given.Addresses {
		a.inUse[g.Prefix.Addr()] = r.Pod.String()
	}
	return given, nil
}

// Insist starts a pod as a kubelet does: again, where it waited for a minute in
// vain, until ctx ends. It tells how often that was.
func (a *Agent) Insist(ctx context.Context, r holder.Request) (given holder.Assignment, refused int, err error) {
	for {
		given, err = a.Start(ctx, r)
		var short *holder.ShortError
		if again := errors.As(err, &short) || errors.Is(err, holder.ErrNotReady); !again || ctx.Err() != nil {
			return given, refused, err
		}
		refused++
	}
}

// End takes back what a pod was given.
func (a *Agent) End(ctx context.Context, given holder.Assignment) error {
	a.mu.Lock()
	for _, g := range given.Addresses {
		delete(a.inUse, g.Prefix.Addr())
	}
	a.mu.Unlock()
	return a.Release(ctx, given.Key, given.Sequence, nil)
}

// NodeObject is a Node that nothing is known of but its name.
func NodeObject(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// PodRequest asks for an address of each of some pools, an interface each, for a
// pod of the default namespace.
func PodRequest(name string, uid types.UID, pools ...holder.PoolRef) holder.Request {
	r := holder.Request{
		Key: holder.Key{PodUID: uid, Sandbox: "sandbox-of-" + name},
		Pod: types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: name},
	}
	for i, pool := range pools {
		r.NICs = append(r.NICs, holder.NIC{
			Interface: fmt.Sprintf("net%d", i+1), Choices: []holder.Choice{{Pools: []holder.PoolRef{pool}}},
		})
	}
	return r
}
