package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/internal/controller"
	"railhead/internal/loopback"
	"railhead/internal/policy"
)

// Namespace is the controller's own.
const Namespace = "railhead-system"

// serviceAccount is the user that the controller is in a cluster, so that it has
// the rights of its manifest and no others.
const serviceAccount = "system:serviceaccount:" + Namespace + ":railhead-controller"

// clusterRole is the one of its manifest, with which its webhooks go.
const clusterRole = "railhead-controller"

// Registered is the name of the webhook configurations.
const Registered = "railhead"

// Replica says how a replica of the controller runs.
type Replica struct {
	// Name is the group by which the audit log knows it; default: replica.
	Name string
	// Server is the URL where a Process finds the API server; default: where it is.
	Server string
	// Wrap is around its connection to the API server.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Connect makes its access to the API server of its user's.
	Connect func(*rest.Config) *rest.Config
	// WebhookAddress is where it admits; default: a free one of its own.
	WebhookAddress string
	// Elected has it stand for election; otherwise it leads at once.
	Elected bool
}

// Controller is a replica in the test's process.
type Controller struct {
	WebhookAddress, HealthAddress string

	cancel context.CancelFunc
	ended  chan struct{}
	err    error
	log    *buffer
}

// Control starts a replica in the test's process and waits until it admits. It
// ends with the test.
func (s *Server) Control(tb testing.TB, r Replica) *Controller {
	tb.Helper()
	c := s.Begin(tb, r)
	s.AwaitReady(tb, c)
	return c
}

// Begin is Control without waiting.
func (s *Server) Begin(tb testing.TB, r Replica) *Controller {
	tb.Helper()
	c := s.run(tb, r)
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("log of the controller:\n%s", lastLines(c.log.String(), 60))
		}
		c.Stop(tb)
	})
	return c
}

// run starts a replica that goes on until somebody stops it.
func (s *Server) run(tb testing.TB, r Replica) *Controller {
	tb.Helper()
	s.Install(tb)
	ctx, cancel := context.WithCancel(context.Background())
	c := &Controller{
		WebhookAddress: r.WebhookAddress, HealthAddress: loopback.Address(tb),
		cancel: cancel, ended: make(chan struct{}), log: &buffer{},
	}
	if c.WebhookAddress == "" {
		c.WebhookAddress = loopback.Address(tb)
	}
	options := controller.Options{
		Config:           s.replicaConfig(tb, r),
		Namespace:        Namespace,
		WebhookListen:    c.WebhookAddress,
		HealthListen:     c.HealthAddress,
		WebhookURL:       "https://" + c.WebhookAddress,
		CNIConfigDir:     sub(s.home, "net.d"),
		LeaderElection:   r.Elected,
		OwnerClusterRole: clusterRole,
		Log:              slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	go func() {
		defer close(c.ended)
		c.err = controller.Run(ctx, options)
	}()
	return c
}

func (s *Server) replicaConfig(tb testing.TB, r Replica) *rest.Config {
	tb.Helper()
	if r.Name == "" {
		r.Name = "replica"
	}
	config := s.User(tb, serviceAccount, "system:serviceaccounts", "system:serviceaccounts:"+Namespace, "system:authenticated", r.Name)
	config = rest.CopyConfig(config)
	if r.Wrap != nil {
		config.Wrap(r.Wrap)
	}
	if r.Connect != nil {
		config = r.Connect(config)
	}
	return config
}

// Stop ends the replica; it may have ended already.
func (c *Controller) Stop(tb testing.TB) {
	tb.Helper()
	c.cancel()
	select {
	case <-c.ended:
	case <-time.After(Patience):
		tb.Error("the controller does not end")
	}
}

// AwaitReady waits until the replica says that it is ready, and until the API
// server has its webhooks.
func (s *Server) AwaitReady(tb testing.TB, c *Controller) {
	tb.Helper()
	Eventually(tb, func() string {
		select {
		case <-c.ended:
			tb.Fatalf("the controller has ended: %v\n%s", c.err, lastLines(c.log.String(), 30))
		default:
		}
		return ready(c.HealthAddress)
	})
	s.AwaitWebhooks(tb, c.WebhookAddress)
}

func ready(address string) string {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err.Error()
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return answer.Status
	}
	return ""
}

// AwaitWebhooks waits until the API server asks the webhooks at an address: it
// refuses what only they refuse.
func (s *Server) AwaitWebhooks(tb testing.TB, address string) {
	tb.Helper()
	Eventually(tb, func() string {
		var registered admissionv1.ValidatingWebhookConfiguration
		if err := s.Get(tb.Context(), client.ObjectKey{Name: Registered}, &registered); err != nil {
			return err.Error()
		}
		for _, w := range registered.Webhooks {
			if w.ClientConfig.URL == nil || !strings.Contains(*w.ClientConfig.URL, address) {
				return fmt.Sprintf("webhook %s is not that of %s", w.Name, address)
			}
		}
		return ""
	})
	Eventually(tb, func() string {
		probe := Objects(tb, `{apiVersion: spiderpool.spidernet.io/v2beta1, kind: SpiderReservedIP, metadata: {name: probe}, spec: {ips: [x]}}`)[0]
		err := s.Create(tb.Context(), probe, client.DryRunAll)
		if err == nil {
			return "a refusal of what only webhooks refuse"
		}
		if !apierrors.IsInvalid(err) {
			return err.Error()
		}
		return ""
	})
}

// Install makes what the controller's manifest makes of what is not the
// controller itself: its namespace, its rights, and what agents may not write.
func (s *Server) Install(tb testing.TB) {
	tb.Helper()
	var objects []*unstructured.Unstructured
	for _, file := range []string{"namespace.yaml", "railhead-controller.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, "deploy", file))
		if err != nil {
			tb.Fatal(err)
		}
		objects = append(objects, Objects(tb, string(text))...)
	}
	for _, o := range objects {
		switch o.GroupVersionKind().Group {
		case rbacv1.GroupName, admissionv1.GroupName: // of agents
		case corev1.GroupName:
			if kind := o.GetKind(); kind != "Namespace" && kind != "ServiceAccount" {
				continue
			}
		default:
			continue
		}
		if err := s.Create(tb.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			tb.Fatalf("create %s: %v", title(o), err)
		}
	}
}

// Configure writes the cluster's configuration.
func (s *Server) Configure(tb testing.TB, config string) {
	tb.Helper()
	s.Install(tb)
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: policy.ConfigMapName},
		Data:       map[string]string{policy.ConfigMapKey: config},
	}
	err := s.Create(tb.Context(), m)
	if apierrors.IsAlreadyExists(err) {
		err = s.Update(tb.Context(), m)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// buffer keeps what several write.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is all that was written.
func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
