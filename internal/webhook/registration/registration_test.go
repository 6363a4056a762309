package registration

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"railhead/internal/policy"
)

// fixture is a Registration, what it stands on, and what it did.
type fixture struct {
	*Registration
	client     client.WithWatch
	config     policy.Config
	annotated  []string
	bundle     []byte
	ready      bool
	registered []string
	writes     int
	fail       string // kind whose writes the API server refuses
}

var errRefused = errors.New("the API server refuses")

func newFixture(owner string) *fixture {
	f := &fixture{config: policy.DefaultConfig(), bundle: []byte("one"), ready: true}
	f.config.PodResourceInject.Enabled = true
	write := func(o client.Object) error {
		f.writes++
		if _, mutating := o.(*admissionregistrationv1.MutatingWebhookConfiguration); mutating && f.fail == "mutating" {
			return errRefused
		}
		return nil
	}
	f.client = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := write(o); err != nil {
				return err
			}
			return w.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := write(o); err != nil {
				return err
			}
			return w.Update(ctx, o, opts...)
		},
	}).Build()
	f.Registration = New(Options{
		Client:           f.client,
		Endpoint:         Endpoint{Namespace: "railhead-system", Service: "railhead-controller"},
		Config:           func() policy.Config { return f.config },
		Annotated:        func() []string { return f.annotated },
		Bundle:           func() ([]byte, bool) { return f.bundle, f.ready },
		Registered:       func(bundle []byte) { f.registered = append(f.registered, string(bundle)) },
		OwnerClusterRole: owner,
		Log:              slog.New(slog.DiscardHandler),
	})
	return f
}

// reconcile reconciles and returns how many writes that took.
func (f *fixture) reconcile(t *testing.T) (writes int) {
	t.Helper()
	before := f.writes
	if _, err := f.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	return f.writes - before
}

func (f *fixture) configurations(t *testing.T) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	for _, o := range []client.Object{&mutating, &validating} {
		if err := f.client.Get(t.Context(), client.ObjectKey{Name: Name}, o); err != nil {
			t.Fatal(err)
		}
	}
	return &mutating, &validating
}

// TestReconcile: it writes what differs, and only that.
func TestReconcile(t *testing.T) {
	f := newFixture("")
	step := func(name string, want int) {
		t.Helper()
		if got := f.reconcile(t); got != want {
			t.Errorf("%s: %d writes, want %d", name, got, want)
		}
		if again := f.reconcile(t); again != 0 {
			t.Errorf("%s: %d writes more where nothing differs", name, again)
		}
		mutating, validating := f.configurations(t)
		wantMutating, wantValidating := Desired(State{
			Endpoint: f.o.Endpoint, Bundle: f.bundle, Inject: f.config.PodResourceInject, Annotated: f.annotated,
		})
		if diff := cmp.Diff(wantMutating.Webhooks, mutating.Webhooks); diff != "" {
			t.Errorf("%s: mutating (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(wantValidating.Webhooks, validating.Webhooks); diff != "" {
			t.Errorf("%s: validating (-want +got):\n%s", name, diff)
		}
	}
	f.ready = false
	if got := f.reconcile(t); got != 0 || len(f.registered) > 0 {
		t.Errorf("%d writes, %q registered before there is a certificate", got, f.registered)
	}
	f.ready = true
	step("created", 2)
	f.annotated = []string{"ai"}
	step("a namespace is annotated", 1)
	f.bundle = []byte("one and two")
	step("a CA joins", 2)
	f.config.PodResourceInject.Enabled = false
	step("injection is disabled", 1)

	mutating, validating := f.configurations(t)
	mutating.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Ignore)
	mutating.Labels = map[string]string{"example.com/kept": "yes"}
	if err := f.client.Update(t.Context(), mutating); err != nil {
		t.Fatal(err)
	}
	if err := f.client.Delete(t.Context(), validating); err != nil {
		t.Fatal(err)
	}
	step("somebody interferes", 2)
	if mutating, _ = f.configurations(t); mutating.Labels["example.com/kept"] != "yes" || mutating.Labels["app.kubernetes.io/managed-by"] == "" {
		t.Errorf("labels %v, want ours and those of others", mutating.Labels)
	}
	want := []string{"one", "one", "one", "one", "one and two", "one and two", "one and two", "one and two", "one and two", "one and two"}
	if diff := cmp.Diff(want, f.registered); diff != "" {
		t.Errorf("registered (-want +got):\n%s", diff)
	}
}

// TestReconcileKeepsBundle: without a CA of ours, what others wrote stays.
func TestReconcileKeepsBundle(t *testing.T) {
	f := newFixture("")
	f.bundle = nil
	f.reconcile(t)
	mutating, _ := f.configurations(t)
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = []byte("of others")
	}
	if err := f.client.Update(t.Context(), mutating); err != nil {
		t.Fatal(err)
	}
	f.reconcile(t)
	mutating, validating := f.configurations(t)
	if got := string(mutating.Webhooks[0].ClientConfig.CABundle); got != "of others" {
		t.Errorf("mutating trusts %q", got)
	}
	if got := string(validating.Webhooks[0].ClientConfig.CABundle); got != "of others" {
		t.Errorf("validating trusts %q", got)
	}
}

func TestReconcileOwner(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "railhead-controller", UID: "u"}}
	f := newFixture("railhead-controller")
	_, err := f.Reconcile(t.Context(), reconcile.Request{})
	if err == nil || !strings.Contains(err.Error(), "get ClusterRole railhead-controller, which is to own the webhook configurations") {
		t.Errorf("without its ClusterRole: error %v", err)
	}
	f.configurations(t) // are there all the same

	if err := f.client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	if got := f.reconcile(t); got != 2 {
		t.Errorf("%d writes, want the owner in both", got)
	}
	mutating, validating := f.configurations(t)
	want := []metav1.OwnerReference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "railhead-controller", UID: "u"}}
	for _, o := range []client.Object{mutating, validating} {
		if diff := cmp.Diff(want, o.GetOwnerReferences()); diff != "" {
			t.Errorf("%T (-want +got):\n%s", o, diff)
		}
	}
}

// TestReconcileOneFails: one that cannot be written does not keep the other, and
// nothing counts as registered.
func TestReconcileOneFails(t *testing.T) {
	f := newFixture("")
	f.fail = "mutating"
	if _, err := f.Reconcile(t.Context(), reconcile.Request{}); !errors.Is(err, errRefused) {
		t.Errorf("error %v, want %v", err, errRefused)
	}
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: Name}, &admissionregistrationv1.ValidatingWebhookConfiguration{}); err != nil {
		t.Errorf("the validating webhooks: %v", err)
	}
	if len(f.registered) > 0 {
		t.Errorf("%q registered", f.registered)
	}
}
