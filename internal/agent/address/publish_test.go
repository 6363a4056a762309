package address

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/attribution"
	"railhead/internal/ipam/holder"
)

// newTestPublisher runs a publisher of node n1 until the end of the test.
func newTestPublisher(t *testing.T, api *apiServer, pods attribution.PodSource) *publisher {
	t.Helper()
	c, err := newClient(api.config(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	p := newPublisher(c, pods, slog.New(slog.NewTextHandler(t.Output(), nil)), newMetrics())
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

const web0 = "StatefulSet/ai/web/0"

// TestPublish wants endpoints to say whose they are, to go with their pods, and
// those of identities to stay, for the next node to write.
func TestPublish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer()
		p := newTestPublisher(t, api, nil)
		plain, kept := given("a", "uid-a", "10.0.0.1/24", ""), given("web-0", "uid-w", "10.0.0.2/24", web0)
		p.assigned(plain)
		if err := p.assignedNow(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		owner := []any{object{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "uid-a"}}
		if diff := cmp.Diff(owner, field(api.get(endpointOf("a")), "metadata", "ownerReferences")); diff != "" {
			t.Errorf("owners of the endpoint of a pod (-want +got):\n%s", diff)
		}
		web := api.get(endpointOf("web-0"))
		if owners := field(web, "metadata", "ownerReferences"); owners != nil {
			t.Errorf("the endpoint of an identity has the owners %v, want none", owners)
		}
		if kind, name := field(web, "status", "ownerControllerType"), field(web, "status", "ownerControllerName"); kind != "StatefulSet" || name != "web" {
			t.Errorf("made by %v %v, want StatefulSet web", kind, name)
		}
		p.released(&plain)
		p.released(&kept)
		synctest.Wait()
		if e := api.get(endpointOf("a")); e != nil {
			t.Errorf("of a pod that is gone: %v", e)
		}
		web = api.get(endpointOf("web-0"))
		if node := field(web, "status", "current", "node"); node != "" {
			t.Errorf("the endpoint of an identity is of node %q, want none", node)
		}
		if ips := textOf(field(web, "status", "current", "ips")); !strings.Contains(ips, "10.0.0.2/24") {
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
		e := objectOf(newEndpoint(new(given("a", uid, "10.0.0.9/24", "")), node, maker{"Pod", "a", types.UID(uid)}))
		metaOf(e)["annotations"].(object)["note"] = "of somebody else"
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
				api.set(endpointOf("a"), test.there)
				if test.pod != nil {
					api.set(podsPath+"/a", test.pod)
				}
				p := newTestPublisher(t, api, nil)
				p.assigned(given("a", "uid-a", "10.0.0.1/24", ""))
				time.Sleep(time.Second)
				e := api.get(endpointOf("a"))
				if got := field(e, "status", "current", "uid"); got != test.want {
					t.Errorf("it tells of %v, want %s", got, test.want)
				}
				if note := field(e, "metadata", "annotations", "note"); note != "of somebody else" {
					t.Errorf("what somebody else wrote on it is %v", note)
				}
				if isOurs := strings.Contains(textOf(e), "10.0.0.1/24"); isOurs != (test.want == "uid-a") {
					t.Errorf("it says %s", textOf(field(e, "status")))
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
		api.lose(http.MethodPost, endpointsPath, 1)
		p := newTestPublisher(t, api, nil)
		a := given("a", "uid-a", "10.0.0.1/24", "")
		p.assigned(a)
		time.Sleep(10 * time.Millisecond) // before it is tried again
		p.released(&a)
		time.Sleep(time.Second)
		if e := api.get(endpointOf("a")); e != nil {
			t.Errorf("of a pod that is gone: %v", e)
		}
		api.lose(http.MethodDelete, endpointOf("b"), 1)
		b := given("b", "uid-b", "10.0.0.1/24", "")
		p.assigned(b)
		time.Sleep(time.Second)
		p.released(&b)
		time.Sleep(time.Second)
		if e := api.get(endpointOf("b")); e != nil {
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
		p.assigned(a)
		synctest.Wait()
		api.change(endpointOf("a"), func(e object) { e["status"].(object)["current"].(object)["uid"] = "uid-2" })
		p.released(&a)
		synctest.Wait()
		if e := api.get(endpointOf("a")); e == nil {
			t.Error("the endpoint of the newer pod is gone")
		}
		next := given("b", "uid-3", "10.0.0.2/24", "")
		p.assigned(given("b", "uid-1", "10.0.0.1/24", ""))
		p.assigned(next)
		p.released(new(given("b", "uid-1", "10.0.0.1/24", "")))
		time.Sleep(time.Second)
		if uid := field(api.get(endpointOf("b")), "status", "current", "uid"); uid != "uid-3" {
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
		p.assigned(early)
		time.Sleep(time.Second)
		if e := api.get(endpointOf("a")); e != nil {
			t.Errorf("it says %s", textOf(e))
		}
		next := early
		next.Sequence++
		p.assigned(next)
		time.Sleep(time.Second)
		if e := api.get(endpointOf("a")); e == nil {
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
		api.leave()
		p.released(&a)
		time.Sleep(time.Second)
		api.comeBack()
		time.Sleep(2 * time.Minute)
		if node := field(api.get(endpointOf("web-0")), "status", "current", "node"); node != "" {
			t.Errorf("it is of node %v, want none", node)
		}
	})
}

// TestAssignedNow wants a pod of an identity to be told why it cannot be
// published, and nothing to be said of it later, when it may be elsewhere.
func TestAssignedNow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer()
		api.leave()
		p := newTestPublisher(t, api, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := p.assignedNow(ctx, given("web-0", "uid-w", "10.0.0.2/24", web0))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "SpiderEndpoint ai/web-0") || !strings.Contains(err.Error(), "refused") {
			t.Errorf("error %v, want the endpoint, the deadline and why", err)
		}
		api.comeBack()
		time.Sleep(5 * time.Minute)
		if e := api.get(endpointOf("web-0")); e != nil {
			t.Errorf("it says %s", textOf(e))
		}
	})
}

// TestGivenUpAndWritten wants the endpoint of an identity to be parked even if
// it was given up, where the last attempt to write it came through after all.
func TestGivenUpAndWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAPIServer()
		api.lose(http.MethodPost, endpointsPath, 1)
		p := newTestPublisher(t, api, nil)
		ctx, cancel := context.WithTimeout(t.Context(), publishAgain/2)
		defer cancel()
		a := given("web-0", "uid-w", "10.0.0.2/24", web0)
		if err := p.assignedNow(ctx, a); err == nil {
			t.Fatal("no error though the answer was lost")
		}
		if node := field(api.get(endpointOf("web-0")), "status", "current", "node"); node != "n1" {
			t.Fatalf("it is of node %v, want n1", node)
		}
		p.released(&a)
		time.Sleep(time.Second)
		if node := field(api.get(endpointOf("web-0")), "status", "current", "node"); node != "" {
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
			if e := api.get(endpointOf(name)); e != nil {
				t.Errorf("identity %q: it says %s", identity, textOf(e))
			}
			a.Sequence++
			if err := p.assignedNow(t.Context(), a); err != nil {
				t.Errorf("identity %q: error %v of a later assignment", identity, err)
			}
		})
	}
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
				p.assigned(given("a", "uid-a", "10.0.0.1/24", ""))
				time.Sleep(10 * time.Second)
				e := api.get(endpointOf("a"))
				owners, _ := field(e, "metadata", "ownerReferences").([]any)
				if len(owners) != 1 {
					t.Fatalf("it says %s", textOf(e))
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
