package certificates

import (
	"context"
	"crypto/x509"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/cert"
)

const (
	rotateEvery = time.Minute
	// settle is how long API servers may take to learn of a bundle that is registered.
	settle = 2 * time.Minute
	// overlap is how long a CA stays trusted after its certificate was replaced.
	overlap = 24 * time.Hour
)

// Rotation replaces the certificate of a Keeper when two thirds of its time are
// over, in three steps, each of which may be the last before the leader ends:
// first the new CA joins the bundle; once that is registered, the new certificate
// is served; a day later the old CA leaves.
type Rotation struct{ keeper *Keeper }

// Rotation returns the leader's part of a Keeper.
func (k *Keeper) Rotation() *Rotation { return &Rotation{keeper: k} }

// Start looks after the age of the certificate until ctx ends.
func (r *Rotation) Start(ctx context.Context) error {
	repeat(ctx, rotateEvery, r.keeper.o.Log, "rotate the webhooks' certificate", r.advance)
	return nil
}

// NeedLeaderElection says that only the leader rotates.
func (r *Rotation) NeedLeaderElection() bool { return true }

// advance takes the step that is due, if any.
func (r *Rotation) advance(ctx context.Context) error {
	k := r.keeper
	secret, err := k.read(ctx)
	if apierrors.IsNotFound(err) {
		return nil // the Keeper makes it
	}
	if err != nil {
		return err
	}
	now := time.Now()
	m, ok := k.good(secret, now)
	if !ok {
		return nil // the Keeper mends it
	}
	step, err := k.step(m, now)
	if err != nil || step == "" {
		return err
	}
	if err := k.write(ctx, secret, m); err != nil {
		return err
	}
	k.o.Log.Info("webhooks' certificate", "secret", k.key(), "step", step, "expires", m.serving.served.Leaf.NotAfter)
	return nil
}

// good reads a Secret that can be served.
func (k *Keeper) good(secret *corev1.Secret, now time.Time) (*material, bool) {
	m, err := materialOf(secret)
	return m, err == nil && m.serving.check(k.o.Names, m.cas, now) == nil
}

// step changes m by the step that is due and names it, or returns "".
func (k *Keeper) step(m *material, now time.Time) (string, error) {
	if m.next != nil && m.next.check(k.o.Names, m.cas, now) != nil {
		m.next = nil
	}
	switch {
	case m.next == nil && m.serving.isOld(now):
		next, ca, err := newPair(k.o.Names, now, k.o.Validity)
		if err != nil {
			return "", err
		}
		m.next, m.cas = next, trusted(append([]*x509.Certificate{ca}, m.cas...), now)
		return "a new CA is in the bundle", nil
	case m.next != nil && k.isTrusted(m.next, now):
		m.serving, m.next, m.since = m.next, nil, now
		return "the new certificate is served", nil
	case m.next == nil && !m.since.IsZero() && now.After(m.since.Add(overlap)):
		if signers := m.signers(now); len(signers) < len(m.cas) {
			m.cas = signers
			return "the old CA is out of the bundle", nil
		}
	}
	return "", nil
}

// isTrusted says whether API servers have known for long enough to trust a pair.
func (k *Keeper) isTrusted(p *pair, now time.Time) bool {
	k.mu.Lock()
	registered := k.registered
	k.mu.Unlock()
	cas, err := cert.ParseCertsPEM([]byte(registered.bundle))
	return err == nil && now.Sub(registered.since) >= settle && p.check(k.o.Names, cas, now) == nil
}

// signers are the CAs that the serving certificate needs.
func (m *material) signers(now time.Time) []*x509.Certificate {
	var signers []*x509.Certificate
	for _, ca := range m.cas {
		if m.serving.check([]string{""}, []*x509.Certificate{ca}, now) == nil {
			signers = append(signers, ca)
		}
	}
	return signers
}
