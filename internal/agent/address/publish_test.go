package address

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/attribution"
	"railhead/internal/ipam/holder"
	"railhead/internal/kubetest"
)

// newTestPublisher runs a publisher of node n1 until the end of the test.
func newTestPublisher(t *testing.T, api *kubetest.Server, pods attribution.PodSource) *publisher {
	t.Helper()
	c, err := newClient(api.Config(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	p := newPublisher(c, pods, slog.New(slog.NewTextHandler(t.Output(), nil)), newMetrics(), nil)
	stop := p.start()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		stop()
		<-ended
	})
	return p
}

// given is an assignment of a pod, or of an identity's pod.
func given(pod, uid, address, identity string) holder.Assignment {
	return holder.Assignment{
		Key: holder.Key{PodUID: types.UID(uid), Sandbox: "sandbox-" + uid}, Pod: types.NamespacedName{Namespace: "ai", Name: pod},
		Identity: identity, Sequence: 1,
		Addresses: []holder.Assigned{{Interface: "net1", Pool: "rail0", Prefix: netip.MustParsePrefix(address)}},
	}
}

// mustTell has an assignment told of.
func mustTell(t *testing.T, p *publisher, a holder.Assignment) {
	t.Helper()
	if err := p.assigned(a); err != nil {
		t.Fatal(err)
	}
}

const web0 = "StatefulSet/ai/web/0"

// TestPublish wants endpoints to say whose they are, to go with their pods, and
// those of identities to stay, for the next node to write.
func TestPublish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer()
		p := newTestPublisher(t, api, nil)
		plain, kept := given("a", "uid-a", "10.0.0.1/24", ""), given("web-0", "uid-w", "10.0.0.2/24", web0)
		mustTell(t, p, plain)
		if err := p.assignedNow(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		owner := []any{object{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "uid-a"}}
		if diff := cmp.Diff(owner, field(api.Get(endpointOf("a")), "metadata", "ownerReferences")); diff != "" {
			t.Errorf("owners of the endpoint of a pod (-want +got):\n%s", diff)
		}
		web := api.Get(endpointOf("web-0"))
		if owners := field(web, "metadata", "ownerReferences"); owners != nil {
			t.Errorf("the endpoint of an identity has the owners %v, want none", owners)
		}
		if kind, name := field(web, "status", "ownerControllerType"), field(web, "status", "ownerControllerName"); kind != "StatefulSet" || name != "web" {
			t.Errorf("made by %v %v, want StatefulSet web", kind, name)
		}
		p.released(&plain)
		p.released(&kept)
		synctest.Wait()
		if e := api.Get(endpointOf("a")); e != nil {
			t.Errorf("of a pod that is gone: %v", e)
		}
		web = api.Get(endpointOf("web-0"))
		if node := field(web, "status", "current", "node"); node != "" {
			t.Errorf("the endpoint of an identity is of node %q, want none", node)
		}
		if ips := kubetest.Text(field(web, "status", "current", "ips")); !strings.Contains(ips, "10.0.0.2/24") {
			t.Errorf("the endpoint of an identity has %s, want what it had", ips)
		}
		if count, _ := p.lag(time.Now()); count != 0 {
			t.Errorf("%d endpoints are unpublished, want none", count)
		}
	})
}

// TestPublishOnTop wants what is there under an endpoint's name to be written
// over only where that is right, and never the word of another node.
func TestPublishOnTop(t *testing.T) {
	t.Parallel()
	old := func(node, uid string) object {
		e := kubetest.ObjectOf(newEndpoint(new(given("a", uid, "10.0.0.9/24", "")), node, maker{"Pod", "a", types.UID(uid)}))
		kubetest.Meta(e)["annotations"].(object)["note"] = "of somebody else"
		return e
	}
	pod := func(uid string) object {
		return object{"metadata": object{"namespace": "ai", "name": "a", "uid": uid}}
	}
	for name, test := range map[string]struct {
		there, pod object
		want       string // the UID that the endpoint tells of
	}{
		"an earlier pod's":       {old("n1", "uid-0"), pod("uid-a"), "uid-a"},
		"a later pod's":          {old("n1", "uid-2"), pod("uid-2"), "uid-2"},
		"of a pod that is gone":  {old("n1", "uid-0"), nil, "uid-0"},
		"another node's":         {old("n2", "uid-0"), pod("uid-a"), "uid-0"},
		"parked":                 {old("", "uid-0"), pod("uid-a"), "uid-a"},
		"our own of another run": {old("n1", "uid-a"), pod("uid-a"), "uid-a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := newAPIServer()
				api.Set(endpointOf("a"), test.there)
				if test.pod != nil {
					api.Set(podsPath+"/a", test.pod)
				}
				p := newTestPublisher(t, api, nil)
				mustTell(t, p, given("a", "uid-a", "10.0.0.1/24", ""))
				time.Sleep(time.Second)
				e := api.Get(endpointOf("a"))
				if got := field(e, "status", "current", "uid"); got != test.want {
					t.Errorf("it tells of %v, want %s", got, test.want)
				}
				if note := field(e, "metadata", "annotations", "note"); note != "of somebody else" {
					t.Errorf("what somebody else wrote on it is %v", note)
				}
				if isOurs := strings.Contains(kubetest.Text(e), "10.0.0.1/24"); isOurs != (test.want == "uid-a") {
					t.Errorf("it says %s", kubetest.Text(field(e, "status")))
				}
			})
		})
	}
}

// TestPublishLost wants one endpoint where the answer to the request that made
// it was lost, and none once the pod is gone, even if another answer is lost.
func TestPublishLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer()
		api.Lose("create " + endpointsPath)
		p := newTestPublisher(t, api, nil)
		a := given("a", "uid-a", "10.0.0.1/24", "")
		mustTell(t, p, a)
		time.Sleep(10 * time.Millisecond) // before it is tried again
		p.released(&a)
		time.Sleep(time.Second)
		if e := api.Get(endpointOf("a")); e != nil {
			t.Errorf("of a pod that is gone: %v", e)
		}
		api.Lose("delete " + endpointOf("b"))
		b := given("b", "uid-b", "10.0.0.1/24", "")
		mustTell(t, p, b)
		time.Sleep(time.Second)
		p.released(&b)
		time.Sleep(time.Second)
		if e := api.Get(endpointOf("b")); e != nil {
			t.Errorf("of a pod that is gone: %v", e)
		}
	})
}

// TestReleaseLeavesOthers wants the endpoint of a pod that took over the name to
// stay when the earlier pod is released.
func TestReleaseLeavesOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer()
		p := newTestPublisher(t, api, nil)
		a := given("a", "uid-a", "10.0.0.1/24", "")
		mustTell(t, p, a)
		synctest.Wait()
		api.Edit(endpointOf("a"), func(e object) { e["status"].(object)["current"].(object)["uid"] = "uid-2" })
		p.released(&a)
		synctest.Wait()
		if e := api.Get(endpointOf("a")); e == nil {
			t.Error("the endpoint of the newer pod is gone")
		}
		next := given("b", "uid-3", "10.0.0.2/24", "")
		mustTell(t, p, given("b", "uid-1", "10.0.0.1/24", ""))
		mustTell(t, p, next)
		p.released(new(given("b", "uid-1", "10.0.0.1/24", "")))
		time.Sleep(time.Second)
		if uid := field(api.Get(endpointOf("b")), "status", "current", "uid"); uid != "uid-3" {
			t.Errorf("it tells of %v, want uid-3", uid)
		}
	})
}

// TestReleasedBefore wants nothing to be told of an assignment that was released
// in the moment between the holder's answer and ours, whatever the name has else.
func TestReleasedBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer()
		p := newTestPublisher(t, api, nil)
		early := given("a", "uid-a", "10.0.0.1/24", "")
		p.released(&early)
		if err := p.assigned(early); !errors.Is(err, errReleased) {
			t.Errorf("error %v, want %v", err, errReleased)
		}
		time.Sleep(time.Second)
		if e := api.Get(endpointOf("a")); e != nil {
			t.Errorf("it says %s", kubetest.Text(e))
		}
		next := early
		next.Sequence++
		if err := p.assigned(next); err != nil {
			t.Errorf("error %v of the next assignment", err)
		}
		time.Sleep(time.Second)
		if e := api.Get(endpointOf("a")); e == nil {
			t.Error("the next assignment of the same sandbox is not told of")
		}
	})
}

// TestParkAgain wants an endpoint to be parked though the first attempt failed.
func TestParkAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer()
		p := newTestPublisher(t, api, nil)
		a := given("web-0", "uid-w", "10.0.0.2/24", web0)
		if err := p.assignedNow(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		api.Leave()
		p.released(&a)
		time.Sleep(time.Second)
		api.ComeBack()
		time.Sleep(2 * time.Minute)
		if node := field(api.Get(endpointOf("web-0")), "status", "current", "node"); node != "" {
			t.Errorf("it is of node %v, want none", node)
		}
	})
}

// TestParkLost wants the endpoint of a sandbox that is released and assigned the
// same again to be written, though it was parked in between unnoticed.
func TestParkLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer()
		p := newTestPublisher(t, api, nil)
		a := given("web-0", "uid-w", "10.0.0.2/24", web0)
		if err := p.assignedNow(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		api.Lose("update " + endpointOf("web-0"))
		p.released(&a)
		synctest.Wait()
		if node := field(api.Get(endpointOf("web-0")), "status", "current", "node"); node != "" {
			t.Fatalf("it is of node %v, want none", node)
		}
		a.Sequence++
		if err := p.assignedNow(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if node := field(api.Get(endpointOf("web-0")), "status", "current", "node"); node != "n1" {
			t.Errorf("it is of node %v, want n1", node)
		}
	})
}

// TestAssignedNow wants a pod of an identity to be told why it cannot be
// published, and nothing to be said of it later, when it may be elsewhere.
func TestAssignedNow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer()
		api.Leave()
		p := newTestPublisher(t, api, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := p.assignedNow(ctx, given("web-0", "uid-w", "10.0.0.2/24", web0))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "SpiderEndpoint ai/web-0") || !strings.Contains(err.Error(), "refused") {
			t.Errorf("error %v, want the endpoint, the deadline and why", err)
		}
		api.ComeBack()
		time.Sleep(5 * time.Minute)
		if e := api.Get(endpointOf("web-0")); e != nil {
			t.Errorf("it says %s", kubetest.Text(e))
		}
	})
}

// TestGivenUpAndWritten wants the endpoint of an identity to be parked even if
// it was given up, where the last attempt to write it came through after all.
func TestGivenUpAndWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer()
		api.Lose("create " + endpointsPath)
		p := newTestPublisher(t, api, nil)
		ctx, cancel := context.WithTimeout(t.Context(), publishAgain/2)
		defer cancel()
		a := given("web-0", "uid-w", "10.0.0.2/24", web0)
		if err := p.assignedNow(ctx, a); err == nil {
			t.Fatal("no error though the answer was lost")
		}
		if asked := api.Count("create " + endpointsPath); asked != 1 {
			t.Fatalf("it was written %d times, want once", asked)
		}
		time.Sleep(time.Second)
		if node := field(api.Get(endpointOf("web-0")), "status", "current", "node"); node != "" {
			t.Errorf("nobody waits for it, and it is of node %v, want none", node)
		}
		p.released(&a)
		time.Sleep(time.Second)
		if node := field(api.Get(endpointOf("web-0")), "status", "current", "node"); node != "" {
			t.Errorf("it is of node %v, want none", node)
		}
	})
}

// TestReleasedFirst wants nothing to be said of an assignment that was released
// before it was told of, whether the pod keeps its addresses or not.
func TestReleasedFirst(t *testing.T) {
	t.Parallel()
	for name, identity := range map[string]string{"a": "", "web-0": web0} {
		synctest.Test(t, func(t *testing.T) {
			api := newAPIServer()
			p := newTestPublisher(t, api, nil)
			a := given(name, "uid-a", "10.0.0.2/24", identity)
			p.released(&a)
			if err := p.assignedNow(t.Context(), a); !errors.Is(err, errReleased) {
				t.Errorf("identity %q: error %v, want %v", identity, err, errReleased)
			}
			time.Sleep(time.Minute)
			if e := api.Get(endpointOf(name)); e != nil {
				t.Errorf("identity %q: it says %s", identity, kubetest.Text(e))
			}
			a.Sequence++
			if err := p.assignedNow(t.Context(), a); err != nil {
				t.Errorf("identity %q: error %v of a later assignment", identity, err)
			}
		})
	}
}

// TestGivenUpAndParked wants the endpoint of an earlier pod to be parked though
// the next one of its identity was given up meanwhile.
func TestGivenUpAndParked(t *testing.T) {
	t.Parallel()
	for name, isReleased := range map[string]bool{"released": true, "not released": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := newAPIServer()
				p := newTestPublisher(t, api, nil)
				x, y := given("web-0", "uid-x", "10.0.0.2/24", web0), given("web-0", "uid-y", "10.0.0.2/24", web0)
				y.Sequence = 2
				if err := p.assignedNow(t.Context(), x); err != nil {
					t.Fatal(err)
				}
				api.Leave()
				p.released(&x)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if err := p.assignedNow(ctx, y); err == nil {
					t.Error("it was told of while the API server was away")
				}
				if isReleased {
					p.released(&y)
				}
				api.ComeBack()
				time.Sleep(time.Hour)
				if node := field(api.Get(endpointOf("web-0")), "status", "current", "node"); node != "" {
					t.Errorf("it is of node %v, want none", node)
				}
			})
		})
	}
}

// TestOneGivesUp wants an endpoint to be written as long as somebody waits for it,
// and who waits for what another pod took over to be told.
func TestOneGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer()
		p := newTestPublisher(t, api, nil)
		api.Leave()
		a, next := given("web-0", "uid-a", "10.0.0.2/24", web0), given("web-0", "uid-b", "10.0.0.2/24", web0)
		next.Sequence = 2
		now := func(a holder.Assignment, d time.Duration) <-chan error {
			answer := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				answer <- p.assignedNow(ctx, a)
			}()
			return answer
		}
		long := now(a, time.Hour)
		if err := <-now(a, time.Second); !errors.Is(err, errUnpublished) {
			t.Errorf("error %v, want %v", err, errUnpublished)
		}
		api.ComeBack()
		if err := <-long; err != nil {
			t.Errorf("error %v of the one that waits", err)
		}
		if node := field(api.Get(endpointOf("web-0")), "status", "current", "node"); node != "n1" {
			t.Errorf("it is of node %v, want n1", node)
		}
		api.Leave()
		a.Sandbox = "second" // which is not told of yet
		long = now(a, time.Hour)
		synctest.Wait()
		later := now(next, time.Hour)
		if err := <-long; !errors.Is(err, errSuperseded) {
			t.Errorf("error %v, want %v", err, errSuperseded)
		}
		api.ComeBack()
		if err := <-later; err != nil {
			t.Errorf("error %v of the later pod", err)
		}
	})
}

// TestSuperseded wants nothing to be left of a name that another pod has, after
// attempts that failed.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer()
		api.Set(endpointOf("a"), kubetest.ObjectOf(newEndpoint(new(given("a", "uid-2", "10.0.0.9/24", "")), "n1", maker{"Pod", "a", "uid-2"})))
		api.Leave()
		p := newTestPublisher(t, api, nil)
		a := given("a", "uid-a", "10.0.0.1/24", "")
		mustTell(t, p, a)
		time.Sleep(5 * time.Second)
		if n := p.queue.NumRequeues(a.Pod); n == 0 {
			t.Error("no attempt failed")
		}
		api.ComeBack()
		time.Sleep(time.Minute)
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := p.queue.NumRequeues(a.Pod); n != 0 || len(p.endpoints) != 0 {
			t.Errorf("%d attempts and the publications %v are remembered, want none", n, p.endpoints)
		}
	})
}

// TestPublishEnds wants what is queued when the agent ends to be left to its next
// run, and not to be counted as failed.
func TestPublishEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := newClient(newAPIServer().Config(), "n1")
		if err != nil {
			t.Fatal(err)
		}
		m := newMetrics()
		p := newPublisher(c, nil, slog.New(slog.DiscardHandler), m, nil)
		defer p.start()()
		for i := range 100 {
			name := fmt.Sprintf("pod-%d", i)
			mustTell(t, p, given(name, "uid-"+name, "10.0.0.1/24", ""))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
		if text := textOfSeries(t, "publication_failures_total", m.publicationErrors); !strings.Contains(text, "failures_total 0\n") {
			t.Errorf("counted is\n%s", text)
		}
	})
}

// podsKnown is what is known of pods, from a moment on.
type podsKnown struct {
	pod  *attribution.Pod
	from time.Time
}

func (p podsKnown) Pod(string) *attribution.Pod {
	if time.Now().Before(p.from) {
		return nil
	}
	return p.pod
}
func (p podsKnown) PodByName(string, string) *attribution.Pod { return nil }
func (p podsKnown) Synced() bool                              { return true }

// TestMaker wants an endpoint to name what made its pod, to wait a little until
// that is known, and no longer.
func TestMaker(t *testing.T) {
	t.Parallel()
	known := &attribution.Pod{UID: "uid-mirror", Workload: attribution.Workload{Kind: "Job", Name: "train"}}
	for name, test := range map[string]struct {
		after time.Duration
		want  []any
	}{
		"soon":     {time.Second, []any{"Job", "train", "uid-mirror"}},
		"too late": {time.Hour, []any{"Pod", "a", "uid-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := newAPIServer()
				p := newTestPublisher(t, api, podsKnown{known, time.Now().Add(test.after)})
				mustTell(t, p, given("a", "uid-a", "10.0.0.1/24", ""))
				time.Sleep(10 * time.Second)
				e := api.Get(endpointOf("a"))
				owners, _ := field(e, "metadata", "ownerReferences").([]any)
				if len(owners) != 1 {
					t.Fatalf("it says %s", kubetest.Text(e))
				}
				got := []any{field(e, "status", "ownerControllerType"), field(e, "status", "ownerControllerName"), owners[0].(object)["uid"]}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("kind, name and owner (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestEndpointAndBack wants an endpoint to hold all that is needed to know the
// assignment again, of both families and of a VM.
func TestEndpointAndBack(t *testing.T) {
	t.Parallel()
	a := given("virt-launcher-x", "uid-v", "10.0.0.1/24", "VirtualMachine/ai/vm")
	a.Sequence = 0
	a.Addresses = append(a.Addresses,
		holder.Assigned{Interface: "net1", Pool: "six", Prefix: netip.MustParsePrefix("fd00::1/64")},
		holder.Assigned{Interface: "net2", Pool: "rail1", Prefix: netip.MustParsePrefix("10.0.1.1/24")})
	e := newEndpoint(&a, "n1", maker{"VirtualMachine", "vm", "uid-v"})
	if e.Name != "vm" {
		t.Errorf("it is called %s, want vm", e.Name)
	}
	got, err := assignmentOf(e)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("assignment (-want +got):\n%s", diff)
	}
	e.Status.Current.IPs[0].IPv4 = new("10.0.0.1")
	if _, err := assignmentOf(e); err == nil || !strings.Contains(err.Error(), "net1") {
		t.Errorf("error %v of an address without its prefix length, want one that names the interface", err)
	}
}

// TestNodeLabel wants the names of nodes that are too long for a label to stay
// apart.
func TestNodeLabel(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63)
	if got := nodeLabel(long); got != long {
		t.Errorf("%s becomes %s", long, got)
	}
	one, two := nodeLabel(long+"1"), nodeLabel(long+"2")
	if len(one) > 63 || len(two) > 63 || one == two {
		t.Errorf("names become %q and %q", one, two)
	}
}
