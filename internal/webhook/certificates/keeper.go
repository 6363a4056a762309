package certificates

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	year = 365 * 24 * time.Hour
	// readEvery is how long a replica may serve a certificate that was replaced.
	readEvery = 30 * time.Second
)

// Options of a Keeper.
type Options struct {
	// Client reads live: one with a cache would watch Secrets. It may get, create,
	// update and delete the Secret.
	Client            client.Client
	Namespace, Secret string // where replicas share the certificate
	// Names are DNS names and IP addresses that the API server calls the webhooks by.
	Names    []string
	Validity time.Duration // of new certificates; 0 is a year
	Log      *slog.Logger
}

// Keeper serves the certificate of the Secret. The manager runs the Keeper itself on
// every replica, and its Rotation on the leader.
type Keeper struct {
	served
	o Options

	mu         sync.Mutex
	current    *material // as read or written last
	registered registration
}

// registration is what the API server is told to trust, and since when.
type registration struct {
	bundle string
	since  time.Time
}

// NewKeeper returns a Keeper that has no certificate before it is started.
func NewKeeper(o Options) *Keeper {
	if o.Validity == 0 {
		o.Validity = year
	}
	return &Keeper{o: o}
}

// Start keeps to the Secret until ctx ends, and makes it where it is missing or of
// no use. What the API server refuses is tried again.
func (k *Keeper) Start(ctx context.Context) error {
	repeat(ctx, readEvery, k.o.Log, "look after the webhooks' certificate", k.sync)
	return nil
}

// NeedLeaderElection says that every replica serves.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Registered says that the API server is told to trust bundle.
func (k *Keeper) Registered(bundle []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.registered.bundle != string(bundle) {
		k.registered = registration{string(bundle), time.Now()}
	}
}

// sync takes into use what the Secret has, after mending it if need be.
func (k *Keeper) sync(ctx context.Context) error {
	secret, err := k.read(ctx)
	if apierrors.IsNotFound(err) {
		return k.create(ctx)
	}
	if err != nil {
		return err
	}
	m, err := materialOf(secret)
	if err == nil {
		err = m.serving.check(k.o.Names, m.cas, time.Now())
	}
	if err != nil {
		k.o.Log.Warn("the webhooks' certificate is made anew", "secret", k.key(), "reason", err)
		return k.mend(ctx, secret, m.cas)
	}
	k.adopt(m)
	return nil
}

func (k *Keeper) read(ctx context.Context) (*corev1.Secret, error) {
	var secret corev1.Secret
	if err := k.o.Client.Get(ctx, k.key(), &secret); err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", k.key(), err)
	}
	return &secret, nil
}

func (k *Keeper) key() types.NamespacedName {
	return types.NamespacedName{Namespace: k.o.Namespace, Name: k.o.Secret}
}

// create makes the Secret. If another replica was faster, its certificate counts.
func (k *Keeper) create(ctx context.Context) error {
	m, err := k.usable(nil)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: k.o.Namespace, Name: k.o.Secret,
		Labels: map[string]string{"app.kubernetes.io/managed-by": "railhead-controller"},
	}}
	m.put(secret)
	err = k.o.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return k.sync(ctx)
	}
	if err != nil {
		return fmt.Errorf("create Secret %s: %w", k.key(), err)
	}
	k.adopt(m)
	return nil
}

// mend writes what can be served into a Secret that cannot be. Its type cannot be
// changed: one of another type is deleted and made again.
func (k *Keeper) mend(ctx context.Context, secret *corev1.Secret, cas []*x509.Certificate) error {
	if secret.Type != corev1.SecretTypeTLS {
		same := client.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion}
		if err := k.o.Client.Delete(ctx, secret, same); err != nil {
			return fmt.Errorf("delete Secret %s of type %q: %w", k.key(), secret.Type, err)
		}
		return k.create(ctx)
	}
	m, err := k.usable(cas)
	if err != nil {
		return err
	}
	return k.write(ctx, secret, m)
}

// write replaces what is in a Secret, unless another replica did since it was read.
func (k *Keeper) write(ctx context.Context, secret *corev1.Secret, m *material) error {
	m.put(secret)
	if err := k.o.Client.Update(ctx, secret); err != nil {
		return fmt.Errorf("update Secret %s: %w", k.key(), err)
	}
	k.adopt(m)
	return nil
}

// usable returns what is served here already, so that clients notice nothing; if
// that is of no use either, a new certificate. cas stay trusted.
func (k *Keeper) usable(cas []*x509.Certificate) (*material, error) {
	now := time.Now()
	k.mu.Lock()
	current := k.current
	k.mu.Unlock()
	if current != nil {
		cas = append(current.cas[:len(current.cas):len(current.cas)], cas...)
		if current.serving.check(k.o.Names, current.cas, now) == nil {
			return &material{serving: current.serving, next: current.next, cas: trusted(cas, now), since: current.since}, nil
		}
	}
	return newMaterial(k.o.Names, now, k.o.Validity, cas)
}

// adopt serves what the Secret has.
func (k *Keeper) adopt(m *material) {
	k.mu.Lock()
	k.current = m
	k.mu.Unlock()
	k.serve(m.serving.served, m.bundle())
}
