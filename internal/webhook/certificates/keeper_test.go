package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const serviceName = "railhead-webhooks.railhead-system.svc"

var errRefused = errors.New("the API server refuses")

// cluster is an API server with replicas.
type cluster struct {
	client.Client
	log bytes.Buffer
	// fails makes the next writes and reads fail.
	mu    sync.Mutex
	fails int
}

func newCluster(objects ...client.Object) *cluster {
	c := &cluster{}
	fail := func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fails == 0 {
			return nil
		}
		c.fails--
		return errRefused
	}
	c.Client = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := fail(); err != nil {
				return err
			}
			return w.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := fail(); err != nil {
				return err
			}
			return w.Create(ctx, o, opts...)
		},
	}).Build()
	return c
}

// keeper returns the Keeper of another replica.
func (c *cluster) keeper(names ...string) *Keeper {
	if len(names) == 0 {
		names = []string{serviceName}
	}
	return NewKeeper(Options{
		Client: c.Client, Namespace: "railhead-system", Secret: "railhead-webhooks", Names: names,
		Log: slog.New(slog.NewTextHandler(&c.log, nil)),
	})
}

func (c *cluster) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	var s corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "railhead-system", Name: "railhead-webhooks"}, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// start runs a Keeper until the test ends.
func start(t *testing.T, k *Keeper) {
	t.Helper()
	go func() {
		if err := k.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
}

// shake has a client that trusts bundle connect to a server, and returns the
// certificate that it saw.
func shake(server interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}, bundle []byte, name string,
) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	pair, err := server.GetCertificate(nil)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, err
	}
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: time.Now()})
	return leaf, err
}

// served returns the certificate that is served, and wants the API server to trust
// it that trusts the bundle.
func servedBy(t *testing.T, k *Keeper) *x509.Certificate {
	t.Helper()
	bundle, ok := k.Bundle()
	if !ok {
		t.Fatal("there is no certificate")
	}
	leaf, err := shake(k, bundle, serviceName)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func TestKeeperCreates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		k := c.keeper(serviceName, "10.0.0.1", "::1")
		if _, ok := k.Bundle(); ok {
			t.Error("there is a bundle before the start")
		}
		if _, err := k.GetCertificate(nil); err == nil {
			t.Error("there is a certificate before the start")
		}
		changes := 0
		k.OnChange(func() { changes++ })
		start(t, k)
		servedBy(t, k)
		bundle, _ := k.Bundle()
		for _, name := range []string{"10.0.0.1", "::1"} {
			if _, err := shake(k, bundle, name); err != nil {
				t.Error(err)
			}
		}
		s := c.secret(t)
		if s.Type != corev1.SecretTypeTLS || !bytes.Equal(s.Data["ca.crt"], bundle) {
			t.Errorf("Secret of type %s, ca.crt %s, want the bundle %s", s.Type, s.Data["ca.crt"], bundle)
		}
		time.Sleep(time.Hour)
		if changes != 1 {
			t.Errorf("the bundle changed %d times, want once", changes)
		}
		if again := c.secret(t); again.ResourceVersion != s.ResourceVersion {
			t.Error("the Secret was written while nothing was due")
		}
	})
}

// TestKeepersRace: both replicas find no Secret, and serve the same certificate.
func TestKeepersRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		var gate sync.WaitGroup
		gate.Add(2)
		racing := interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
			Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				gate.Done()
				gate.Wait() // for the other to be as far
				return w.Create(ctx, o, opts...)
			},
		})
		one, other := c.keeper(), c.keeper()
		one.o.Client, other.o.Client = racing, racing
		start(t, one)
		start(t, other)
		if a, b := servedBy(t, one), servedBy(t, other); !a.Equal(b) {
			t.Error("two replicas serve two certificates")
		}
	})
}

func TestKeeperRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.fails = 4
		k := c.keeper()
		start(t, k)
		if _, ok := k.Bundle(); ok {
			t.Fatal("there is a certificate though the API server refused")
		}
		time.Sleep(30 * time.Second) // 1, 2, 4, 8 s and jitter
		synctest.Wait()
		servedBy(t, k)
		if !bytes.Contains(c.log.Bytes(), []byte(errRefused.Error())) {
			t.Errorf("nobody was told why: %s", &c.log)
		}
	})
}

// TestKeeperMakesAnew: whatever the Secret has that is of no use.
func TestKeeperMakesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := func(change func(*corev1.Secret)) *corev1.Secret {
			m, err := newMaterial([]string{serviceName}, time.Now(), year, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "railhead-system", Name: "railhead-webhooks"}}
			m.put(s)
			change(s)
			return s
		}
		other, err := newMaterial([]string{"other.svc"}, time.Now(), year, nil)
		if err != nil {
			t.Fatal(err)
		}
		expired, err := newMaterial([]string{serviceName}, time.Now().Add(-2*year), year, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*corev1.Secret{
			"empty":               good(func(s *corev1.Secret) { s.Data = nil }),
			"of another type":     good(func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }),
			"damaged certificate": good(func(s *corev1.Secret) { s.Data["tls.crt"] = s.Data["tls.crt"][:80] }),
			"damaged key":         good(func(s *corev1.Secret) { s.Data["tls.key"] = nil }),
			"key of another":      good(func(s *corev1.Secret) { s.Data["tls.key"] = other.serving.key }),
			"no bundle":           good(func(s *corev1.Secret) { delete(s.Data, "ca.crt") }),
			"CA of another":       good(func(s *corev1.Secret) { s.Data["ca.crt"] = other.bundle() }),
			"name of another":     good(other.put),
			"expired":             good(expired.put),
		} {
			c := newCluster(s)
			k := c.keeper()
			if err := k.sync(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			leaf := servedBy(t, k)
			if bytes.Equal(leaf.Raw, expired.serving.served.Certificate[0]) {
				t.Errorf("%s: the old certificate is served", name)
			}
			if next := c.keeper(); next.sync(t.Context()) != nil || !servedBy(t, next).Equal(leaf) {
				t.Errorf("%s: another replica does not serve the new certificate", name)
			}
		}
	})
}

func TestKeeperLeavesGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		start(t, c.keeper())
		before := c.secret(t)
		start(t, c.keeper())
		if after := c.secret(t); before.ResourceVersion != after.ResourceVersion {
			t.Error("a second replica wrote a good Secret")
		}
	})
}

// TestKeeperRestores: who deletes the Secret stops nothing, because what is served
// comes back.
func TestKeeperRestores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		k := c.keeper()
		start(t, k)
		leaf := servedBy(t, k)
		if err := c.Delete(t.Context(), c.secret(t)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		other := c.keeper()
		start(t, other)
		if !servedBy(t, k).Equal(leaf) || !servedBy(t, other).Equal(leaf) {
			t.Error("another certificate is served")
		}
	})
}

// TestKeeperFollows: a certificate that another replica wrote is served without a
// restart, and one that was written between reading and writing is not
// overwritten.
func TestKeeperFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		k := c.keeper()
		start(t, k)
		stale := c.secret(t)
		m, err := newMaterial([]string{serviceName}, time.Now(), year, nil)
		if err != nil {
			t.Fatal(err)
		}
		written := c.secret(t)
		m.put(written)
		if err := c.Update(t.Context(), written); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !servedBy(t, k).Equal(m.serving.served.Leaf) {
			t.Error("the replaced certificate is served")
		}
		if err := k.write(t.Context(), stale, m); !apierrors.IsConflict(err) {
			t.Errorf("write over a newer Secret: error %v, want a conflict", err)
		}
	})
}

// casOf are the certificates of a bundle.
func casOf(t *testing.T, bundle []byte) []*x509.Certificate {
	t.Helper()
	cas, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		t.Fatal(err)
	}
	return cas
}
