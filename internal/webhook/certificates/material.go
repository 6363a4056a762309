package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
)

// What the Secret has beside tls.crt and tls.key.
const (
	keyBundle          = corev1.ServiceAccountRootCAKey // ca.crt
	keyNextCertificate = "next.crt"
	keyNextKey         = "next.key"
	// annotationSince is when tls.crt came into use.
	annotationSince = "railhead.io/serving-since"
)

// material is what replicas share.
type material struct {
	serving *pair
	next    *pair               // waits for its CA to be trusted; nil most of the time
	cas     []*x509.Certificate // the bundle, the newest first
	since   time.Time           // serving is served since then; zero if that is not known
}

// newMaterial makes a certificate that is served at once. Its bundle begins with
// the new CA.
func newMaterial(names []string, now time.Time, validity time.Duration, older []*x509.Certificate) (*material, error) {
	serving, ca, err := newPair(names, now, validity)
	if err != nil {
		return nil, err
	}
	return &material{serving: serving, cas: trusted(append([]*x509.Certificate{ca}, older...), now), since: now}, nil
}

// materialOf reads a Secret. Of one that is damaged it returns what can be read, maybe
// nothing, and the error.
func materialOf(secret *corev1.Secret) (*material, error) {
	m := &material{}
	var errs []error
	if secret.Type != corev1.SecretTypeTLS {
		errs = append(errs, fmt.Errorf("type %q: want %q", secret.Type, corev1.SecretTypeTLS))
	}
	var err error
	if m.serving, err = parsePair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err != nil {
		errs = append(errs, fmt.Errorf("%s and %s: %w", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err))
	}
	if m.cas, err = cert.ParseCertsPEM(secret.Data[keyBundle]); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", keyBundle, err))
	}
	if next, ok := secret.Data[keyNextCertificate]; ok {
		// One that is damaged is made again when the rotation comes to it.
		m.next, _ = parsePair(next, secret.Data[keyNextKey])
	}
	if since, err := time.Parse(time.RFC3339, secret.Annotations[annotationSince]); err == nil {
		m.since = since
	}
	return m, errors.Join(errs...)
}

// put writes into a Secret.
func (m *material) put(secret *corev1.Secret) {
	secret.Type = corev1.SecretTypeTLS
	secret.Data = map[string][]byte{
		corev1.TLSCertKey:       m.serving.certificate,
		corev1.TLSPrivateKeyKey: m.serving.key,
		keyBundle:               m.bundle(),
	}
	if m.next != nil {
		secret.Data[keyNextCertificate], secret.Data[keyNextKey] = m.next.certificate, m.next.key
	}
	if !m.since.IsZero() {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, annotationSince, m.since.UTC().Format(time.RFC3339))
	}
}

// bundle is the PEM of all CAs.
func (m *material) bundle() []byte {
	var out []byte
	for _, ca := range m.cas {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: ca.Raw})...)
	}
	return out
}

// trusted drops what has expired and what is there twice.
func trusted(cas []*x509.Certificate, now time.Time) []*x509.Certificate {
	var some []*x509.Certificate
	for _, ca := range cas {
		if now.Before(ca.NotAfter) && !slices.ContainsFunc(some, ca.Equal) {
			some = append(some, ca)
		}
	}
	return some
}
