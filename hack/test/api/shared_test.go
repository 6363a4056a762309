package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/railhead/v1alpha1"
	"railhead/hack/cluster/binaries"
	"railhead/internal/kernel/kerneltest"
)

// sharedEnv is the directory of what all tests share. A test that runs in a process
// of its own, as in network namespaces, inherits it.
const sharedEnv = "RAILHEAD_TEST_SHARED"

// shared is the API server of all tests that need none of their own.
var shared sharedServer

type sharedServer struct {
	mu         sync.Mutex
	control    *control    // nil: no test wanted it yet, or another process has it
	users      int         // tests
	controller *Controller // nil: none of the tests that run wants one
}

// Exclusive gives a test the shared API server to itself, with no controller. The
// test is not parallel, so that no other runs.
func Exclusive(t *testing.T) *Server {
	t.Helper()
	return shared.use(t, true)
}

// Shared gives a test the shared API server with a controller, which other tests
// use at the same time: what the test makes has names and addresses of its own.
func Shared(t *testing.T) *Server {
	t.Helper()
	return shared.use(t, false)
}

func (h *sharedServer) use(t *testing.T, exclusive bool) *Server {
	t.Helper()
	Wanted(t)
	h.mu.Lock()
	defer h.mu.Unlock()
	home := sub(os.Getenv(sharedEnv), "server")
	if h.control == nil && isFile(filepath.Join(home, "kubeconfig")) {
		return h.joined(t, home)
	}
	if h.control == nil {
		h.start(t, home)
	}
	if exclusive && h.users > 0 {
		t.Fatal("a test that is parallel has the API server to itself")
	}
	h.users++
	s := h.control.server(t)
	writes, err := h.control.audit.read()
	if err != nil {
		t.Fatal(err)
	}
	s.since = len(writes)
	t.Cleanup(func() { h.leave(t, s) })
	if !exclusive && h.controller == nil {
		s.Configure(t, usual)
		h.controller = s.run(t, Replica{})
		s.AwaitReady(t, h.controller)
	}
	return s
}

func (h *sharedServer) start(t *testing.T, home string) {
	t.Helper()
	c, err := start(t, home, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := forward("unix", c.socket(), "tcp", c.server(t).address()); err != nil {
		t.Fatal(errors.Join(err, c.env.Stop()))
	}
	h.control = c
}

// leave ends what the test has of the server. The last one leaves nothing there.
func (h *sharedServer) leave(t *testing.T, s *Server) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.Failed() {
		t.Logf("the end of the API server's log:\n%s", s.log())
		if h.controller != nil {
			t.Logf("log of the controller:\n%s", lastLines(h.controller.log.String(), 60))
		}
	}
	h.users--
	if h.users > 0 {
		return
	}
	if h.controller != nil {
		h.controller.Stop(t)
		h.controller = nil
	}
	s.wipe(t, append(ours(), others()...))
}

func (h *sharedServer) stop() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.control == nil {
		return nil
	}
	return h.control.env.Stop()
}

// joined is the shared server of the process that started this one.
func (h *sharedServer) joined(t *testing.T, home string) *Server {
	t.Helper()
	programs, err := binaries.Ensure(t.Context(), os.Stderr, binaries.Etcd, binaries.Kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	return (&control{home: home, programs: programs}).server(t)
}

// InNetNS runs a part of a test as [kerneltest.NetNS] does. There the shared API
// server is where it is outside.
func (s *Server) InNetNS(t *testing.T, fn func()) {
	t.Helper()
	kerneltest.NetNS(t, func() {
		t.Helper()
		if err := forward("tcp", s.address(), "unix", s.socket()); err != nil {
			t.Fatal(err)
		}
		fn()
	})
}

// address is host:port of the API server.
func (s *Server) address() string {
	host, _ := url.Parse(s.Config.Host)
	return host.Host
}

// socket leads to the API server too, from all network namespaces.
func (c *control) socket() string { return filepath.Join(c.home, "api.sock") }

// forward takes connections for as long as the process lives, and makes them to
// another address.
func forward(network, address, toNetwork, to string) error {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), network, address)
	if err != nil {
		return err
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				join(context.Background(), connection, toNetwork, to)
			}()
		}
	}()
	return nil
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// others are the kinds that tests make besides ours.
func others() []schema.GroupVersionKind {
	list := []schema.GroupVersionKind{
		admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), // of whom later kinds ask
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	}
	for _, kind := range []string{"Pod", "Node", "ConfigMap", "Namespace"} {
		list = append(list, corev1.SchemeGroupVersion.WithKind(kind))
	}
	for _, kind := range []string{"AddressLease", "PoolLedger"} {
		list = append(list, v1alpha1.GroupVersion.WithKind(kind))
	}
	return list
}

// testRole begins the names of roles that tests give, and take away again.
const testRole = "test-"

// stays says whether an object is the API server's own, or of the manifests that
// all tests install.
func stays(o *unstructured.Unstructured) bool {
	switch namespace := o.GetNamespace(); o.GetKind() {
	case "Namespace":
		return o.GetName() == "default" || o.GetName() == Namespace || strings.HasPrefix(o.GetName(), "kube-")
	case "ClusterRole", "ClusterRoleBinding":
		return !strings.HasPrefix(o.GetName(), testRole)
	default:
		return strings.HasPrefix(namespace, "kube-")
	}
}

// wipe deletes everything of some kinds, first what would ask webhooks, until
// nothing is left. No controller may run.
func (s *Server) wipe(t *testing.T, kinds []schema.GroupVersionKind) {
	t.Helper()
	ctx := context.Background() // also at the end of a test
	Eventually(t, func() string {
		var left []string
		for _, kind := range kinds {
			list, err := s.all(ctx, kind)
			if err != nil {
				return err.Error()
			}
			for i := range list {
				if stays(&list[i]) {
					continue
				}
				left = append(left, title(&list[i]))
				if err := s.force(ctx, &list[i]); client.IgnoreNotFound(err) != nil {
					left = append(left, err.Error()) // it asks webhooks that are gone for a moment
				}
			}
		}
		if len(left) > 0 {
			return fmt.Sprintf("the end of %d objects: %s", len(left), strings.Join(left[:min(len(left), 10)], ", "))
		}
		return ""
	})
}

// force deletes an object, whatever keeps it.
func (s *Server) force(ctx context.Context, o *unstructured.Unstructured) error {
	if len(o.GetFinalizers()) > 0 {
		if err := s.Patch(ctx, o, mergePatch(`{"metadata":{"finalizers":null}}`)); err != nil {
			return err
		}
	}
	if err := s.Delete(ctx, o, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	if o.GetKind() != "Namespace" {
		return nil
	}
	namespace := &corev1.Namespace{}
	if err := s.Get(ctx, client.ObjectKeyFromObject(o), namespace); err != nil {
		return err
	}
	namespace.Spec.Finalizers = nil // what is in it was deleted before
	return s.SubResource("finalize").Update(ctx, namespace)
}
