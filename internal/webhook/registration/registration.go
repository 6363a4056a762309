// Package registration keeps the two webhook configurations of the API server as
// they must be: which requests come to us, by which CAs we are known, and what
// happens while no replica answers. It answers no request, and makes no certificate.
//
// An outage of the controller must never stop pods that do not use Railhead.
package registration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"railhead/internal/policy"
)

// Options of a Registration.
type Options struct {
	// Client reads live. It may get, create and update both configurations, and get
	// the ClusterRole.
	Client   client.Client
	Endpoint Endpoint
	Config   func() policy.Config // as of now: policy.Catalog's
	// Annotated are the namespaces that have networks injected into all their pods:
	// webhook.Namespaces'.
	Annotated func() []string
	// Bundle are the CAs to trust, false before there is a certificate:
	// certificates.Keeper's or Files'. Without any, those that the configurations have
	// stay.
	Bundle func() ([]byte, bool)
	// Registered is told what the API server is told to trust: certificates.Keeper's.
	// Nil for nobody.
	Registered func(bundle []byte)
	// OwnerClusterRole owns both configurations, so that they go with it; empty for none.
	OwnerClusterRole string
	Log              *slog.Logger
}

// Registration keeps both configurations. Only the leader may run it.
type Registration struct {
	o     Options
	queue atomic.Pointer[queue] // of the running controller
}

// New returns a Registration that writes nothing before Setup or Reconcile.
func New(o Options) *Registration { return &Registration{o: o} }

// Reconcile writes what differs, whatever the request is. Before there is a
// certificate it does nothing: a Poke follows once there is one.
func (r *Registration) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	bundle, ok := r.o.Bundle()
	if !ok {
		return reconcile.Result{}, nil
	}
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	for _, have := range []client.Object{&mutating, &validating} {
		if err := r.o.Client.Get(ctx, client.ObjectKey{Name: Name}, have); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("get %T %s: %w", have, Name, err)
		}
	}
	state := State{Endpoint: r.o.Endpoint, Bundle: bundle, Inject: r.o.Config().PodResourceInject, Annotated: r.o.Annotated()}
	if len(state.Bundle) == 0 {
		state.Bundle = bundleOf(&mutating, &validating)
	}
	wantMutating, wantValidating := Desired(state)
	// Without its owner a configuration still works: say so after writing it.
	owners, ownerErr := r.owners(ctx)
	wantMutating.OwnerReferences, wantValidating.OwnerReferences = owners, owners
	err := errors.Join(
		keep(ctx, r, &mutating, wantMutating, &mutating.Webhooks, wantMutating.Webhooks),
		keep(ctx, r, &validating, wantValidating, &validating.Webhooks, wantValidating.Webhooks),
	)
	if err == nil && r.o.Registered != nil {
		r.o.Registered(bundle)
	}
	return reconcile.Result{}, errors.Join(err, ownerErr)
}

// bundleOf is what the configurations have that somebody else wrote into them.
func bundleOf(mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration) []byte {
	for _, w := range mutating.Webhooks {
		if len(w.ClientConfig.CABundle) > 0 {
			return w.ClientConfig.CABundle
		}
	}
	for _, w := range validating.Webhooks {
		if len(w.ClientConfig.CABundle) > 0 {
			return w.ClientConfig.CABundle
		}
	}
	return nil
}

// keep creates what is not there, and makes it as it is wanted if it differs in
// what is ours.
func keep[W any](ctx context.Context, r *Registration, have, want client.Object, webhooks *[]W, wanted []W) error {
	if have.GetResourceVersion() == "" {
		if err := r.o.Client.Create(ctx, want); err != nil {
			return fmt.Errorf("create %T %s: %w", want, Name, err)
		}
		r.o.Log.Info("webhooks registered", "configuration", fmt.Sprintf("%T", want), "name", Name)
		return nil
	}
	if changed := adoptMeta(have, want); !changed && equality.Semantic.DeepEqual(*webhooks, wanted) {
		return nil
	}
	*webhooks = wanted
	if err := r.o.Client.Update(ctx, have); err != nil {
		return fmt.Errorf("update %T %s: %w", have, Name, err)
	}
	r.o.Log.Info("webhooks registered again", "configuration", fmt.Sprintf("%T", have), "name", Name)
	return nil
}

// adoptMeta adds the labels and owners that are wanted, and says whether any was
// missing.
func adoptMeta(have, want client.Object) (changed bool) {
	labels := have.GetLabels()
	for key, value := range want.GetLabels() {
		if labels[key] == value {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key], changed = value, true
	}
	have.SetLabels(labels)
	owners := have.GetOwnerReferences()
	for _, owner := range want.GetOwnerReferences() {
		if !hasOwner(owners, owner) {
			owners, changed = append(owners, owner), true
		}
	}
	have.SetOwnerReferences(owners)
	return changed
}
