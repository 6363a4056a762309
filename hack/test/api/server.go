// Package api is for tests of what users write on a real Kubernetes API server:
// it starts etcd and kube-apiserver of the cluster's cache on the loopback
// interface, with our CRDs, and has kubectl, an audit log that counts writes,
// and the controller, in the test's process or as the program that is shipped.
// There is no other component: nothing makes pods of Deployments, collects
// garbage or ends namespaces.
//
//	func TestSomething(tb testing.TB) {
//		s := api.Require(tb)
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	cniv1 "railhead/api/cni/v1"
	railheadv1alpha1 "railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/hack/cluster/binaries"
)

// Patience is how long anything may take before a test gives up. It is far
// more than anything takes, on a machine that has other work too.
const Patience = 2 * time.Minute

// root is the checkout, from the directory of the tests.
const root = "../../.."

// Server is a running API server with an administrator's client.
type Server struct {
	client.Client
	Config *rest.Config // of the administrator; each use has a copy

	dir      string
	env      *envtest.Environment
	programs *binaries.Set
	audit    string // file
	syncs    bool   // etcd syncs its disk
}

// Wanted skips a test unless API servers are asked for.
func Wanted(tb testing.TB) {
	tb.Helper()
	if os.Getenv("RAILHEAD_API") == "" {
		tb.Skip("needs an API server: make test-api")
	}
}

// Require starts an API server for one test, or skips it. Its etcd leaves it to
// the kernel when to write to the disk.
func Require(tb testing.TB) *Server {
	tb.Helper()
	return require(tb, &Server{})
}

// RequireSynced is Require with an etcd that syncs its disk before it answers, as
// in a cluster: for who measures times.
func RequireSynced(tb testing.TB) *Server {
	tb.Helper()
	return require(tb, &Server{syncs: true})
}

func require(tb testing.TB, s *Server) *Server {
	tb.Helper()
	Wanted(tb)
	programs, err := binaries.Ensure(tb.Context(), os.Stderr, binaries.Etcd, binaries.Kubernetes)
	if err != nil {
		tb.Fatal(err)
	}
	s.dir, s.programs = tb.TempDir(), programs
	s.audit = filepath.Join(s.dir, "audit.log")
	if err := s.start(tb); err != nil {
		tb.Fatalf("no API server: %v\n%s", err, s.log())
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the API server's last words:\n%s", s.log())
		}
		if err := s.env.Stop(); err != nil {
			tb.Error(err)
		}
	})
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

func (s *Server) start(tb testing.TB) error {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "audit.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	launchers, err := s.launchers("etcd", "kube-apiserver")
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, "apiserver.log"))
	if err != nil {
		return err
	}
	server := &envtest.APIServer{Path: launchers[1], CertDir: s.sub("certificates"), Err: log}
	// Of themselves they take ports that were free a moment ago.
	if server.Address, server.Port, err = net.SplitHostPort(freeAddress(tb)); err != nil {
		return err
	}
	server.Configure().
		Set("audit-policy-file", filepath.Join(s.dir, "audit.yaml")).
		Set("audit-log-path", s.audit).
		Set("audit-log-mode", "blocking"). // what a client was answered is in the log
		Set("profiling", "false")
	etcd := &envtest.Etcd{Path: launchers[0], DataDir: s.sub("etcd"), URL: &url.URL{Scheme: "http", Host: freeAddress(tb)}}
	etcd.Configure().Set("listen-peer-urls", "http://"+freeAddress(tb))
	if s.syncs {
		etcd.Configure().Disable("unsafe-no-fsync") // which envtest asks for
	}
	s.env = &envtest.Environment{
		ControlPlane: envtest.ControlPlane{
			Etcd:      etcd,
			APIServer: server,
		},
		CRDDirectoryPaths:        []string{filepath.Join(root, "charts/railhead/crds")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: Patience,
	}
	if s.Config, err = s.env.Start(); err != nil {
		return errors.Join(err, s.env.Stop())
	}
	if err := os.WriteFile(s.kubeconfig(), s.env.KubeConfig, 0o600); err != nil {
		return err
	}
	s.Client, err = client.New(s.Config, client.Options{Scheme: Scheme()})
	return err
}

// sub makes a directory of its own for something.
func (s *Server) sub(name string) string {
	dir := filepath.Join(s.dir, name)
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

func (s *Server) log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "apiserver.log"))
	return lastLines(string(text), 30)
}
