package address

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/journal"
	"railhead/internal/kubetest"
)

// errTest is an error.
var errTest = errors.New("not now")

// fixture is a node with an API server, whose agent is started and killed.
type fixture struct {
	api  *kubetest.Server
	disk *memory
	dir  string // instead of disk, if it is not empty
	boot string
	log  *slog.Logger // nil: that of the test

	mu        sync.Mutex
	used      map[netip.Addr]string
	processes map[types.UID][]int
	look, ask error // why namespaces cannot be looked into, and processes not asked
}

func newFixture(c *controller) *fixture {
	f := &fixture{api: newAPIServer(), disk: &memory{files: map[string][]byte{}}, boot: "boot-1", used: map[netip.Addr]string{}}
	f.api.Wrote = func(path string, o object) {
		if strings.HasPrefix(path, leasesPath+"/") {
			c.answer(o)
		}
	}
	return f
}

// use puts addresses into a network namespace of the node.
func (f *fixture) use(a holder.Assignment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, have := range a.Addresses {
		f.used[have.Prefix.Addr()] = "net:[4026532281]"
	}
}

// run has a process in a pod; without a UID, none can be told of any.
func (f *fixture) run(a holder.Assignment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes = map[types.UID][]int{a.PodUID: {4711}}
	if a.PodUID == "" {
		f.ask = errTest
	}
}

func (f *fixture) running() (map[types.UID][]int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.processes), f.ask
}

func (f *fixture) inUse() (map[netip.Addr]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.used), f.look
}

// running is an agent's service while it runs.
type running struct {
	*Service

	kill  func()
	ended chan struct{}
	err   error
}

// start starts a service, which is killed at the end of the test.
func (f *fixture) start(t *testing.T) *running {
	t.Helper()
	config := Config{
		NodeName: "n1", Kubernetes: f.api.Config(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Dir: f.dir, BootID: f.boot, InUse: f.inUse, Processes: f.running,
	}
	if f.log != nil {
		config.Logger = f.log
	}
	if f.dir == "" {
		config.Disk = f.disk
	}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Service: s, ended: make(chan struct{})}
	r.kill = func() {
		cancel()
		<-r.ended
	}
	go func() {
		defer close(r.ended)
		r.err = s.Run(ctx)
	}()
	t.Cleanup(r.kill)
	synctest.Wait()
	return r
}

// ready starts a service and waits until it can assign.
func (f *fixture) ready(t *testing.T) *running {
	t.Helper()
	r := f.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.AwaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return r
}

// pod makes a pod and returns what it asks for: an address of each pool, in
// order, or of the next one.
func (f *fixture) pod(name string, rails ...string) holder.Request {
	f.api.Set(podsPath+"/"+name, object{
		"metadata": object{"namespace": "ai", "name": name, "uid": "uid-" + name},
		"spec":     object{"nodeName": "n1"}, "status": object{"phase": "Running"},
	})
	r := holder.Request{
		Key: holder.Key{PodUID: types.UID("uid-" + name), Sandbox: "sandbox-" + name},
		Pod: types.NamespacedName{Namespace: "ai", Name: name},
	}
	for i, choices := range rails {
		var pools []holder.PoolRef
		for pool := range strings.SplitSeq(choices, ",") {
			subnet := netip.MustParsePrefix("10.0." + strings.TrimPrefix(pool, "rail") + ".0/24")
			pools = append(pools, holder.PoolRef{Name: pool, Subnet: subnet})
		}
		r.NICs = append(r.NICs, holder.NIC{Interface: fmt.Sprintf("net%d", i+1), Choices: []holder.Choice{{Pools: pools}}})
	}
	return r
}

// assign gives a pod addresses, or fails.
func (r *running) assign(t *testing.T, request holder.Request) holder.Assignment {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	a, err := r.Assign(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// refused asks for addresses that are not given, and returns why.
func (r *running) refused(t *testing.T, request holder.Request) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	a, err := r.Assign(ctx, request)
	if err == nil {
		t.Fatalf("pod %s was given %s", request.Pod, addressesOf(&a))
	}
	return err
}

func endpointOf(name string) string { return endpointsPath + "/" + name }

// field is what an object has below names.
func field(o object, names ...string) any {
	var v any = o
	for _, name := range names {
		m, _ := v.(object)
		v = m[name]
	}
	return v
}

// memory is a disk in memory, which may be full.
type memory struct {
	mu     sync.Mutex
	files  map[string][]byte
	isFull bool
}

func (m *memory) fill(isFull bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isFull = isFull
}

func (m *memory) lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.files)
}

func (m *memory) Read(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return append([]byte(nil), data...), nil
}

func (m *memory) Append(name string, data []byte) error {
	return m.write(name, func() { m.files[name] = append(m.files[name], data...) })
}

func (m *memory) Replace(name string, data []byte) error {
	return m.write(name, func() { m.files[name] = append([]byte(nil), data...) })
}

func (m *memory) write(name string, write func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isFull {
		return &fs.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
	}
	write()
	return nil
}

func (m *memory) Truncate(name string, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = m.files[name][:size]
	return nil
}

func (m *memory) Sync(string) error { return nil }

var _ journal.Disk = (*memory)(nil)

// TestAssign wants pods to get an address of each rail, once: the first after the
// controller granted them, the next out of the reserve without a request before
// the answer. Then endpoints say so.
func TestAssign(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(4, 20, 20))
		r := f.ready(t)
		first := r.assign(t, f.pod("a", "rail0", "rail1"))
		if diff := cmp.Diff("net1 10.0.0.1/24, net2 10.0.1.1/24", addressesOf(&first)); diff != "" {
			t.Errorf("the first pod (-want +got):\n%s", diff)
		}
		synctest.Wait()
		writes := f.api.Count("update " + leasesPath + "/n1")
		second := r.assign(t, f.pod("b", "rail0", "rail1"))
		if now := f.api.Count("update " + leasesPath + "/n1"); now != writes {
			t.Errorf("%d writes of the lease before the second pod had its answer, want none", now-writes)
		}
		if diff := cmp.Diff("net1 10.0.0.2/24, net2 10.0.1.2/24", addressesOf(&second)); diff != "" {
			t.Errorf("the second pod (-want +got):\n%s", diff)
		}
		time.Sleep(10 * time.Second)
		for name, a := range map[string]holder.Assignment{"a": first, "b": second} {
			e := f.api.Get(endpointOf(name))
			want := []any{
				object{"interface": "net1", "ipv4": a.Addresses[0].Prefix.String(), "ipv4Pool": "rail0"},
				object{"interface": "net2", "ipv4": a.Addresses[1].Prefix.String(), "ipv4Pool": "rail1"},
			}
			if diff := cmp.Diff(want, field(e, "status", "current", "ips")); diff != "" {
				t.Errorf("endpoint %s (-want +got):\n%s", name, diff)
			}
		}
		if asked := f.api.Count("create " + endpointsPath); asked != 2 {
			t.Errorf("%d requests told of two pods, want 2", asked)
		}
	})
}

// TestShort wants the error of a pod that gets nothing to name all that somebody
// needs to mend it, and the node to want no address for it any more.
func TestShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(0, 1))
		r := f.ready(t)
		r.assign(t, f.pod("a", "rail0"))
		err := r.refused(t, f.pod("b", "rail0"))
		for _, want := range []string{"addresses of pod ai/b", "net1", "rail0", "all addresses are held, 1 lack"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q, want %q in it", err, want)
			}
		}
		time.Sleep(15 * time.Second)
		if wants := field(f.api.Get(leasesPath+"/n1"), "spec", "wants"); !strings.Contains(kubetest.Text(wants), `"addresses":1`) {
			t.Errorf("the node wants %s, want one address of rail0", kubetest.Text(wants))
		}
	})
}

// TestNextPool wants a pod to get an address of its second choice where the
// controller says that the first has none, and where it says nothing, short of
// the pod's deadline.
func TestNextPool(t *testing.T) {
	t.Parallel()
	for name, isSilent := range map[string]bool{"short": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newController(2, 0, 9)
				f := newFixture(c)
				r := f.ready(t)
				r.assign(t, f.pod("a", "rail1")) // and a reserve with it
				synctest.Wait()
				f.api.Change(func() { c.isPaused = isSilent })
				began := time.Now()
				a := r.assign(t, f.pod("b", "rail0,rail1"))
				if a.Addresses[0].Pool != "rail1" {
					t.Errorf("it got %s", addressesOf(&a))
				}
				if took := time.Since(began); isSilent != (took > 10*time.Second) {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestWaits wants a pod to get the address that another one gives back while it
// waits.
func TestWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(0, 1))
		r := f.ready(t)
		first := r.assign(t, f.pod("a", "rail0"))
		time.AfterFunc(5*time.Second, func() {
			if err := r.Release(context.Background(), first.Key, first.Sequence, nil); err != nil {
				t.Error(err)
			}
		})
		if second := r.assign(t, f.pod("b", "rail0")); second.Addresses[0].Prefix != first.Addresses[0].Prefix {
			t.Errorf("it got %s, want %s", addressesOf(&second), addressesOf(&first))
		}
	})
}

// TestFullDisk wants new pods to be refused where the disk is full, and nothing
// else: addresses come back meanwhile.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(4, 9))
		r := f.ready(t)
		a := r.assign(t, f.pod("a", "rail0"))
		f.disk.fill(true)
		if err := r.refused(t, f.pod("b", "rail0")); !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, holder.ErrDisk) {
			t.Errorf("error %v, want %v", err, syscall.ENOSPC)
		}
		if err := r.Release(t.Context(), a.Key, a.Sequence, nil); err != nil {
			t.Error(err)
		}
		if left := r.Assignments(); len(left) > 0 {
			t.Errorf("pods have %+v, want none", left)
		}
		f.disk.fill(false)
		r.assign(t, f.pod("c", "rail0"))
	})
}

// TestHome wants a pod that keeps its addresses to be given those of the pool that
// its endpoint says it had, and of the first one where that cannot be read.
func TestHome(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*fixture)
		want   string
	}{
		"had":            {func(*fixture) {}, "net1 10.0.1.1/24"},
		"had none":       {func(f *fixture) { f.api.Delete(endpointOf("web-0")) }, "net1 10.0.0.1/24"},
		"not understood": {func(f *fixture) { changeAddress(f, "10.0.1.7") }, "net1 10.0.0.1/24"},
		"of no choice":   {func(f *fixture) { changeAddress(f, "10.9.1.7/24") }, "net1 10.0.0.1/24"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(newController(2, 9, 9))
				earlier := given("web-0", "uid-0", "10.0.1.7/24", web0)
				earlier.Addresses[0].Pool = "rail1"
				f.api.Set(endpointOf("web-0"), kubetest.ObjectOf(newEndpoint(&earlier, "", maker{"StatefulSet", "web", "uid-0"})))
				test.change(f)
				r := f.ready(t)
				request := f.pod("web-0", "rail0,rail1")
				request.Identity = web0
				a := r.assign(t, request)
				if got := addressesOf(&a); got != test.want {
					t.Errorf("it got %s, want %s", got, test.want)
				}
			})
		})
	}
}

// changeAddress has the endpoint of web-0 say another address.
func changeAddress(f *fixture, address string) {
	f.api.Edit(endpointOf("web-0"), func(e object) {
		e["status"].(object)["current"].(object)["ips"].([]any)[0].(object)["ipv4"] = address
	})
}

// TestIdentity wants a pod that keeps its addresses to be published before it
// has its answer, and a VM on its way here once it is here alone.
func TestIdentity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(2, 9))
		r := f.ready(t)
		request := f.pod("web-0", "rail0")
		request.Identity = web0
		a := r.assign(t, request)
		if node := field(f.api.Get(endpointOf("web-0")), "status", "current", "node"); node != "n1" {
			t.Errorf("when the pod had its answer, its endpoint was of node %v", node)
		}
		if err := r.Release(t.Context(), a.Key, a.Sequence, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if node := field(f.api.Get(endpointOf("web-0")), "status", "current", "node"); node != "" {
			t.Errorf("after the pod, its endpoint is of node %v", node)
		}

		vm := f.pod("virt-launcher-2", "rail0")
		vm.Identity, vm.Migration = "VirtualMachine/ai/vm", true
		source := given("virt-launcher-1", "uid-1", "10.0.0.9/24", vm.Identity)
		f.api.Set(endpointOf("vm"), kubetest.ObjectOf(newEndpoint(&source, "n2", maker{"VirtualMachine", "vm", "uid-1"})))
		began := time.Now()
		r.assign(t, vm)
		if took := time.Since(began); took > time.Second {
			t.Errorf("the VM waited for %v", took)
		}
		time.Sleep(time.Minute)
		if node := field(f.api.Get(endpointOf("vm")), "status", "current", "node"); node != "n2" {
			t.Errorf("while the VM moves, its endpoint is of node %v, want n2", node)
		}
		f.api.Edit(endpointOf("vm"), func(e object) { e["status"].(object)["current"].(object)["node"] = "" })
		time.Sleep(2 * time.Minute)
		if node := field(f.api.Get(endpointOf("vm")), "status", "current", "node"); node != "n1" {
			t.Errorf("after the move, its endpoint is of node %v, want n1", node)
		}
	})
}

// TestReleasedWhileWaiting wants a pod not to be given what was released while it
// waited for the publication: others may have that.
func TestReleasedWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(2, 9))
		r := f.ready(t)
		f.api.Refuse("create "+endpointsPath, http.StatusServiceUnavailable)
		request := f.pod("web-0", "rail0")
		request.Identity = web0
		answer := make(chan error, 1)
		go func() {
			_, err := r.Assign(context.Background(), request)
			answer <- err
		}()
		time.Sleep(5 * time.Second)
		if err := r.Release(t.Context(), request.Key, 0, nil); err != nil {
			t.Fatal(err)
		}
		f.api.Refuse("create "+endpointsPath, 0)
		if err := <-answer; !errors.Is(err, errReleased) {
			t.Errorf("error %v, want %v", err, errReleased)
		}
		if left := r.Assignments(); len(left) != 0 {
			t.Errorf("pods have %+v, want none", left)
		}
	})
}
