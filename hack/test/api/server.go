// Package api is for tests of what users write on a real Kubernetes API server:
// it starts etcd and kube-apiserver of the cluster's cache on the loopback
// interface, with our CRDs, and has kubectl, an audit log that counts writes,
// and the controller, in the test's process or as the program that is shipped.
// There is no other component: nothing makes pods of Deployments, collects
// garbage or ends namespaces.
//
// The tests of this package share one API server (Exclusive and Shared). A test
// that stops its server, and one of another package, has its own:
//
//	func TestSomething(tb testing.TB) {
//		s := api.Own(tb)
//		s.Control(tb, api.Replica{})
//		s.MustApply(tb, manifest)
//		…
//	}
//
// It needs no root. The first time takes a quarter of an hour, to build
// Kubernetes: tests run with RAILHEAD_API=1, as `make test-api` does. Without
// it they skip.
package api

import (
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	cniv1 "railhead/api/cni/v1"
	railheadv1alpha1 "railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/hack/cluster/binaries"
	"railhead/internal/loopback"
)

// Patience is how long anything may take before a test gives up. It is far
// more than anything takes, on a machine that has other work too.
const Patience = 5 * time.Minute

// root is the checkout, from the directory of the tests.
const root = "../../.."

// Server is a running API server as one test uses it, with an administrator's client.
type Server struct {
	client.Client
	*control

	Config *rest.Config // of the administrator; each use has a copy

	dir   string // of the test
	since int    // how many writes were logged before the test
}

// control is an API server with its etcd.
type control struct {
	home     string // directory of its files
	env      *envtest.Environment
	programs *binaries.Set
	audit    auditLog
}

// Wanted skips a test unless API servers are asked for.
func Wanted(tb testing.TB) {
	tb.Helper()
	if os.Getenv("RAILHEAD_API") == "" {
		tb.Skip("needs an API server: make test-api")
	}
}

// Own starts an API server for one test, or skips it. Its etcd leaves it to the
// kernel when to write to the disk.
func Own(tb testing.TB) *Server {
	tb.Helper()
	return own(tb, false)
}

// RequireSynced is Own with an etcd that syncs its disk before it answers, as in
// a cluster: for benchmarks.
func RequireSynced(tb testing.TB) *Server {
	tb.Helper()
	return own(tb, true)
}

func own(tb testing.TB, synced bool) *Server {
	tb.Helper()
	Wanted(tb)
	c, err := start(tb, tb.TempDir(), synced)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the end of the API server's log:\n%s", c.log())
		}
		if err := c.env.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return c.server(tb)
}

// server is what a test uses the API server by.
func (c *control) server(tb testing.TB) *Server {
	tb.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	if err != nil {
		tb.Fatal(err)
	}
	config.QPS = -1
	s := &Server{control: c, Config: config, dir: tb.TempDir()}
	if s.Client, err = client.New(config, client.Options{Scheme: Scheme()}); err != nil {
		tb.Fatal(err)
	}
	return s
}

// Scheme has all kinds that the tests read and write.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(errors.Join(
		scheme.AddToScheme(s), v2beta1.AddToScheme(s), cniv1.AddToScheme(s), railheadv1alpha1.AddToScheme(s),
	))
	return s
}

// start starts an API server with files in a directory. It may outlive the test.
func start(tb testing.TB, home string, synced bool) (*control, error) {
	tb.Helper()
	programs, err := binaries.Ensure(tb.Context(), os.Stderr, binaries.Etcd, binaries.Kubernetes)
	if err != nil {
		return nil, err
	}
	c := &control{home: home, programs: programs, audit: auditLog{file: filepath.Join(home, "audit.log")}}
	if err := os.WriteFile(filepath.Join(home, "audit.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	if c.env, err = c.environment(tb, synced); err != nil {
		return nil, err
	}
	if _, err := c.env.Start(); err != nil {
		return nil, errors.Join(err, errors.New(c.log()), c.env.Stop())
	}
	return c, os.WriteFile(c.kubeconfig(), c.env.KubeConfig, 0o600)
}

// environment is what envtest starts.
func (c *control) environment(tb testing.TB, synced bool) (*envtest.Environment, error) {
	tb.Helper()
	launchers, err := c.launchers("etcd", "kube-apiserver")
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(c.home, "apiserver.log"))
	if err != nil {
		return nil, err
	}
	server := &envtest.APIServer{Path: launchers[1], CertDir: sub(c.home, "certificates"), Err: log}
	// Of themselves they take ports that were free a moment ago.
	if server.Address, server.Port, err = net.SplitHostPort(loopback.Address(tb)); err != nil {
		return nil, err
	}
	server.Configure().
		Set("audit-policy-file", filepath.Join(c.home, "audit.yaml")).
		Set("audit-log-path", c.audit.file).
		Set("audit-log-mode", "blocking"). // what a client was answered is in the log
		Set("profiling", "false")
	etcd := &envtest.Etcd{Path: launchers[0], DataDir: sub(c.home, "etcd"), URL: &url.URL{Scheme: "http", Host: loopback.Address(tb)}}
	etcd.Configure().Set("listen-peer-urls", "http://"+loopback.Address(tb))
	if synced {
		etcd.Configure().Disable("unsafe-no-fsync") // which envtest asks for
	}
	return &envtest.Environment{
		ControlPlane:             envtest.ControlPlane{Etcd: etcd, APIServer: server},
		CRDDirectoryPaths:        []string{filepath.Join(root, "charts/railhead/crds")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: Patience,
	}, nil
}

// sub makes a directory for something of the test.
func (s *Server) sub(name string) string { return sub(s.dir, name) }

func sub(dir, name string) string {
	dir = filepath.Join(dir, name)
	utilruntime.Must(os.MkdirAll(dir, 0o700))
	return dir
}

// User is a configuration for another user, of whom the audit log tells.
func (s *Server) User(tb testing.TB, name string, groups ...string) *rest.Config {
	tb.Helper()
	user, err := s.env.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		tb.Fatal(err)
	}
	return user.Config()
}

func (c *control) kubeconfig() string { return filepath.Join(c.home, "kubeconfig") }

func (c *control) log() string {
	text, _ := os.ReadFile(filepath.Join(c.home, "apiserver.log"))
	return lastLines(string(text), 30)
}
