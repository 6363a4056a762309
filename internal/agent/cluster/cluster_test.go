package cluster

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"railhead/internal/policy"
)

func logger(t *testing.T) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// running runs a test with a Cache that runs, in a bubble of time. All that it
// started has ended when it returns.
func running(t *testing.T, a *apiServer, test func(c *Cache)) {
	t.Helper()
	runningWith(t, Config{API: a.Config(), Node: "n1", Log: logger(t)}, test)
}

func runningWith(t *testing.T, config Config, test func(c *Cache)) {
	t.Helper()
	_ = t.Context().Done() // is made when it is first asked for: not in the bubble
	synctest.Test(t, func(t *testing.T) {
		c, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		test(c)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v, want %v", err, context.Canceled)
		}
	})
}

// after lets some time go by in a bubble.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// podOf is a pod of a node.
func podOf(node, name, uid string, more content) content {
	meta := content{
		"namespace": "ai", "name": name, "uid": uid, "labels": content{"app": "training"},
		"annotations":   content{"k8s.v1.cni.cncf.io/networks": "rail0", lastApplied: strings.Repeat("x", 100)},
		"managedFields": []any{content{"manager": "kubelet"}},
	}
	maps.Copy(meta, more)
	return content{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": content{"nodeName": node}}
}

func nadOf(namespace, name, config string) content {
	return content{
		"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
		"metadata": content{
			"namespace": namespace, "name": name, "annotations": content{"k8s.v1.cni.cncf.io/resourceName": "rdma/a", lastApplied: "x"},
			"managedFields": []any{content{"manager": "railhead"}},
		},
		"spec": content{"config": config},
	}
}

func spiderOf(kind, name string, spec, status content) content {
	return content{
		"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": kind,
		"metadata": content{"name": name, "generation": 1}, "spec": spec, "status": status,
	}
}

func poolOf(name, subnet, ips string) content {
	return spiderOf("SpiderIPPool", name, content{"subnet": subnet, "ips": []any{ips}},
		content{"allocatedIPs": `{"10.0.0.9":{"interface":"net1","pod":"ai/a","podUid":"u"}}`, "totalIPCount": 1})
}

func configMapOf(name, text string) content {
	return content{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": content{"namespace": "railhead-system", "name": name},
		"data": content{"conf.yml": text, "other": "x"},
	}
}

// small is a cluster with one of everything.
func small() *apiServer {
	a := newAPIServer()
	a.set(podsPath, podOf("n1", "a-0", "u0", nil))
	a.set(podsPath, podOf("n2", "b-0", "u9", nil))
	a.set(nadsPath, nadOf("ai", "rail0", `{"type":"macvlan"}`))
	a.set(poolsPath, poolOf("pool0", "10.0.0.0/24", "10.0.0.9-10.0.0.20"))
	a.set(spiderPath+"spiderreservedips", spiderOf("SpiderReservedIP", "r", content{"ips": []any{"10.0.0.10"}}, nil))
	a.set(coordinatorsPath, spiderOf("SpiderCoordinator", "default", content{"podCIDRType": "auto", "mode": "overlay"},
		content{"phase": "Synced", "overlayPodCIDR": []any{"10.244.0.0/16"}, "serviceCIDR": []any{"10.96.0.0/12"}}))
	a.set(configMapsPath, configMapOf("spiderpool-conf", "enableIPv6: false\n"))
	return a
}

// wantAll wants everything of small to be known, without a request.
func wantAll(t *testing.T, a *apiServer, c *Cache) {
	t.Helper()
	if _, err := c.Namespace(t.Context(), "ai"); err != nil { // which is read anew for who asks next, if it is old
		t.Error(err)
	}
	synctest.Wait()
	before := a.requests()
	pod, err := c.Pod(t.Context(), "ai", "a-0", "u0")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(metav1.ObjectMeta{
		Namespace: "ai", Name: "a-0", UID: "u0", ResourceVersion: pod.ResourceVersion, Labels: map[string]string{"app": "training"},
		Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": "rail0"},
	}, pod.ObjectMeta); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	namespace, err := c.Namespace(t.Context(), "ai")
	if err != nil || namespace.Labels["team"] != "a" || namespace.Annotations == nil {
		t.Errorf("namespace %+v, error %v", namespace, err)
	}
	nad, err := c.NAD("ai", "rail0")
	if err != nil {
		t.Fatal(err)
	}
	if nad.Spec.Config != `{"type":"macvlan"}` || !cmp.Equal(nad.Annotations, map[string]string{"k8s.v1.cni.cncf.io/resourceName": "rdma/a"}) || nad.ManagedFields != nil {
		t.Errorf("NAD %+v", nad)
	}
	wantCatalog(t, c)
	spec, status, err := c.Coordinator()
	if err != nil || *spec.Mode != "overlay" || *spec.VethMTU != 1500 || !cmp.Equal(status.ServiceCIDR, []string{"10.96.0.0/12"}) {
		t.Errorf("coordinator %+v, %+v, error %v", spec, status, err)
	}
	meta, addresses := c.Node()
	if diff := cmp.Diff([]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1"), netip.MustParseAddr("192.0.2.1")}, addresses, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("addresses of the node (-want +got):\n%s", diff)
	}
	if meta.Name != "n1" || meta.UID != "node-1" || meta.Labels["zone"] != "a" || meta.ManagedFields != nil {
		t.Errorf("node %+v", meta)
	}
	if n := a.requests() - before; n != 0 {
		t.Errorf("%d requests were sent for what is known", n)
	}
}

func wantCatalog(t *testing.T, c *Cache) {
	t.Helper()
	pool, ok := c.Catalog().Pool("pool0")
	if !ok || pool.Subnet.String() != "10.0.0.0/24" {
		t.Errorf("pool %+v, %t", pool, ok)
	}
	if !c.Catalog().Reserved(4).Contains(netip.MustParseAddr("10.0.0.10")) {
		t.Error("no reserved address")
	}
	if c.Catalog().Config().EnableIPv6 {
		t.Error("the settings are not in force")
	}
	if n := c.Catalog().Usage("pool0"); n != 0 {
		t.Errorf("%d addresses in use are known, of which the node needs none", n)
	}
}

// TestKnown wants all that there is to be known, of API servers that begin a watch
// with it, and of those that do not.
func TestKnown(t *testing.T) {
	t.Parallel()
	for name, isOld := range map[string]bool{"watch list": false, "list and watch": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := small()
			a.IsOld = isOld
			running(t, a, func(c *Cache) {
				if err := c.Ready(); err != nil {
					t.Errorf("not ready: %v", err)
				}
				wantAll(t, a, c)
				if c.pods.get("ai", "b-0") != nil || c.nodes.get("", "n2") != nil {
					t.Error("what is of another node is known")
				}
			})
		})
	}
}

// TestAway wants all that is known to stay while the API server is away, and what
// became of it meanwhile to be known when it is back.
func TestAway(t *testing.T) {
	t.Parallel()
	a := small()
	running(t, a, func(c *Cache) {
		a.Leave()
		after(time.Hour)
		wantAll(t, newAPIServer(), c)
		if err := c.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		if _, err := c.Pod(t.Context(), "ai", "a-1", "u1"); err == nil || apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "pod ai/a-1") {
			t.Errorf("pod that is not known: error %v", err)
		}
		a.delete(podsPath, "ai/a-0")
		a.delete(nadsPath, "ai/rail0")
		a.delete(poolsPath, "pool0")
		a.set(podsPath, podOf("n1", "a-1", "u1", nil))
		a.set(poolsPath, poolOf("pool1", "10.0.1.0/24", "10.0.1.9"))
		a.ComeBack()
		after(2 * time.Minute)
		if _, err := c.Pod(t.Context(), "ai", "a-0", "u0"); !apierrors.IsNotFound(err) {
			t.Errorf("pod that is gone: error %v", err)
		}
		if _, err := c.Pod(t.Context(), "ai", "a-1", "u1"); err != nil {
			t.Error(err)
		}
		if _, err := c.NAD("ai", "rail0"); !apierrors.IsNotFound(err) {
			t.Errorf("NAD that is gone: error %v", err)
		}
		_, isOld := c.Catalog().Pool("pool0")
		if _, isNew := c.Catalog().Pool("pool1"); isOld || !isNew {
			t.Errorf("pool0 is known: %t, pool1: %t", isOld, isNew)
		}
	})
}

// TestRestart wants a Cache that starts while the API server is away to say so, and
// to go on when it comes.
func TestRestart(t *testing.T) {
	t.Parallel()
	a := small()
	a.IsAway = true
	running(t, a, func(c *Cache) {
		after(time.Minute)
		err := c.Ready()
		for _, want := range []string{"Pods of this node", "NetworkAttachmentDefinitions", "SpiderIPPools", "ConfigMap railhead-system/spiderpool-conf", "connection refused"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("ready: %v, want %q in it", err, want)
			}
		}
		if _, err := c.NAD("ai", "rail0"); err == nil || apierrors.IsNotFound(err) {
			t.Errorf("NAD: error %v, want one that does not say that there is none", err)
		}
		if _, _, err := c.Coordinator(); err == nil || apierrors.IsNotFound(err) {
			t.Errorf("coordinator: error %v, want one that does not say that there is none", err)
		}
		if meta, addresses := c.Node(); meta.Name != "n1" || meta.Labels != nil || addresses != nil {
			t.Errorf("node %+v, %v", meta, addresses)
		}
		a.ComeBack()
		after(2 * time.Minute)
		if err := c.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		wantAll(t, a, c)
	})
}

// TestSilent wants questions without an answer to be told, and given up.
func TestSilent(t *testing.T) {
	t.Parallel()
	a := small()
	a.IsSilent = true
	running(t, a, func(c *Cache) {
		after(time.Minute)
		if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "no answer for 10s") {
			t.Errorf("ready: %v", err)
		}
		began := time.Now()
		if _, err := c.Pod(t.Context(), "ai", "a-0", "u0"); err == nil || time.Since(began) > requestMost {
			t.Errorf("pod after %v: error %v", time.Since(began), err)
		}
		a.Change(func() { a.IsSilent = false })
		after(10 * time.Minute)
		if err := c.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
	})
}

// TestMissing wants kinds that are not installed to be named, to keep no other from
// being known, and to be found when they are.
func TestMissing(t *testing.T) {
	t.Parallel()
	a := small()
	a.Missing = []string{"/apis/k8s.cni.cncf.io", spiderPath}
	running(t, a, func(c *Cache) {
		err := c.Ready()
		for _, want := range []string{"NetworkAttachmentDefinitions (the cluster has no such kind", "SpiderIPPools (", "SpiderCoordinators ("} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("ready: %v, want %q in it", err, want)
			}
		}
		if strings.Contains(err.Error(), "Pods") {
			t.Errorf("ready: %v, though pods are known", err)
		}
		if _, err := c.Pod(t.Context(), "ai", "a-0", "u0"); err != nil {
			t.Error(err)
		}
		if _, err := c.NAD("ai", "rail0"); err == nil || !strings.Contains(err.Error(), "not installed") {
			t.Errorf("NAD: error %v", err)
		}
		if _, err := c.ReadNAD(t.Context(), "ai", "rail0"); err == nil || apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "not installed") {
			t.Errorf("NAD, asked for: error %v", err)
		}
		after(time.Hour)
		if n := a.Count("list " + nadsPath); n > 100 {
			t.Errorf("in an hour it asked %d times", n)
		}
		a.Change(func() { a.Missing = nil })
		after(3 * time.Minute)
		if err := c.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		wantAll(t, a, c)
	})
}

// TestForbidden wants a right that is not given to be told.
func TestForbidden(t *testing.T) {
	t.Parallel()
	a := small()
	a.Answers[poolsPath] = http.StatusForbidden
	running(t, a, func(c *Cache) {
		if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "SpiderIPPools (") || strings.Contains(err.Error(), "Coordinators") {
			t.Errorf("ready: %v", err)
		}
	})
}

// TestWatches wants changes to be known after watches ended, whether the API server
// knows from where on or not.
func TestWatches(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(a *apiServer){
		"cut": (*apiServer).Cut, "expired": func(a *apiServer) { a.Fail(http.StatusGone) },
		"forgotten": func(a *apiServer) { a.Change(func() { a.IsBlank = true }); a.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := small()
			running(t, a, func(c *Cache) {
				for _, uid := range []string{"u1", "u2", "u3"} {
					end(a)
					a.set(podsPath, podOf("n1", "a-"+uid, uid, nil))
					a.set(nadsPath, nadOf("ai", "rail0", uid))
					a.set(poolsPath, poolOf("pool-"+uid, "10.0.1.0/24", "10.0.1."+uid[1:]))
					after(2 * time.Minute)
					if c.pods.get("ai", "a-"+uid) == nil {
						t.Errorf("pod a-%s is not known", uid)
					}
					if nad, err := c.NAD("ai", "rail0"); err != nil || nad.Spec.Config != uid {
						t.Errorf("NAD %+v, error %v", nad, err)
					}
					if _, ok := c.Catalog().Pool("pool-" + uid); !ok {
						t.Errorf("pool-%s is not known", uid)
					}
				}
			})
		})
	}
}

// TestSettings wants the first ConfigMap that there is to count, and one that
// cannot be understood to change nothing.
func TestSettings(t *testing.T) {
	t.Parallel()
	a := newAPIServer()
	running(t, a, func(c *Cache) {
		for _, step := range []struct {
			name string
			do   func()
			want bool // IPv6
		}{
			{"none", func() {}, true},
			{"old name", func() { a.set(configMapsPath, configMapOf("spiderpool-config", "enableIPv6: false")) }, false},
			{"new name", func() { a.set(configMapsPath, configMapOf("spiderpool-conf", "enableIPv6: true")) }, true},
			{"old name does not count", func() { a.set(configMapsPath, configMapOf("spiderpool-config", "enableIPv6: false\nenableIPv4: true")) }, true},
			{"changed", func() { a.set(configMapsPath, configMapOf("spiderpool-conf", "enableIPv6: false")) }, false},
			{"bad", func() { a.set(configMapsPath, configMapOf("spiderpool-conf", "enableIPv66: true")) }, false},
			{"without the key", func() {
				a.set(configMapsPath, content{"apiVersion": "v1", "kind": "ConfigMap", "metadata": content{"namespace": "railhead-system", "name": "spiderpool-conf"}})
			}, false},
			{"of others", func() {
				a.set(configMapsPath, content{"apiVersion": "v1", "kind": "ConfigMap", "metadata": content{"namespace": "railhead-system", "name": "x"}, "data": content{"conf.yml": "enableIPv6: true"}})
			}, false},
			{"good", func() { a.set(configMapsPath, configMapOf("spiderpool-conf", "enableIPv6: true")) }, true},
			{"new name gone", func() { a.delete(configMapsPath, "railhead-system/spiderpool-conf") }, false},
			{"both gone", func() { a.delete(configMapsPath, "railhead-system/spiderpool-config") }, true},
		} {
			step.do()
			synctest.Wait()
			if got := c.Catalog().Config().EnableIPv6; got != step.want {
				t.Errorf("%s: IPv6 is on: %t, want %t", step.name, got, step.want)
			}
		}
		if c.Catalog().Config().Socket != policy.DefaultConfig().Socket {
			t.Error("the settings are no defaults")
		}
	})
}

func TestNew(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]Config{
		"name of the node": {API: newAPIServer().Config()},
		"Kubernetes":       {Node: "n1"},
		"client":           {Node: "n1", API: &rest.Config{Host: "http://\x00"}},
	} {
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}
