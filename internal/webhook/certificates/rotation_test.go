package certificates

import (
	"context"
	"crypto/x509"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// lead runs the Rotation of a Keeper until the test ends.
func lead(t *testing.T, k *Keeper) {
	t.Helper()
	go func() {
		if err := k.Rotation().Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
}

// register is what registration does: it registers each bundle, here half a minute
// after it is there, and says so. It returns what the API server trusts now.
func register(t *testing.T, k *Keeper) (registered func() []byte) {
	t.Helper()
	var trusted atomic.Value
	trusted.Store([]byte(nil))
	changed := make(chan struct{}, 1)
	k.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	go func() {
		for {
			select {
			case <-t.Context().Done():
				return
			case <-changed:
			}
			time.Sleep(30 * time.Second)
			bundle, _ := k.Bundle()
			trusted.Store(bundle)
			k.Registered(bundle)
		}
	}()
	return func() []byte { return trusted.Load().([]byte) }
}

// TestRotation: over three years, the API server trusts at any time what each
// replica serves, and certificates are replaced long before they expire. Everybody
// looks twice a day only, so that years pass quickly.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		leader, other := c.keeper(), c.keeper()
		serials := map[string]bool{}
		for range 3 * 365 * 2 {
			for _, look := range []func(context.Context) error{leader.sync, other.sync, leader.Rotation().advance} {
				if err := look(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			registered, _ := leader.Bundle()
			leader.Registered(registered)
			time.Sleep(12 * time.Hour)
			for _, k := range []*Keeper{leader, other} {
				leaf, err := shake(k, registered, serviceName)
				if err != nil {
					t.Fatalf("%s: %v", time.Now(), err)
				}
				if left := time.Until(leaf.NotAfter); left < year/4 {
					t.Fatalf("%s: %s are left", time.Now(), left)
				}
				serials[leaf.SerialNumber.String()] = true
			}
		}
		if len(serials) != 5 {
			t.Errorf("%d certificates in 3 years, want one each 8 months: 5", len(serials))
		}
		if bundle, _ := leader.Bundle(); len(casOf(t, bundle)) != 1 {
			t.Errorf("%d CAs are trusted, want that of the certificate alone", len(casOf(t, bundle)))
		}
	})
}

// isDue has both replicas serve a certificate that is to be replaced now, and
// returns it.
func isDue(t *testing.T, replicas ...*Keeper) *x509.Certificate {
	t.Helper()
	for _, k := range replicas {
		if err := k.sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	leaf := servedBy(t, replicas[0])
	time.Sleep(time.Until(leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 3 * 2)))
	return leaf
}

// TestRotationSteps looks at one rotation each second.
func TestRotationSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		leader, other := c.keeper(), c.keeper()
		registered := register(t, leader)
		first := isDue(t, leader, other)
		start(t, leader)
		start(t, other)
		lead(t, leader)
		due := time.Now()
		var joined, replaced bool
		for range 600 {
			time.Sleep(time.Second)
			synctest.Wait()
			for _, k := range []*Keeper{leader, other} {
				leaf, err := shake(k, registered(), serviceName)
				if err != nil {
					t.Fatalf("%s after it was due: %v", time.Since(due), err)
				}
				replaced = replaced || !leaf.Equal(first)
			}
			joined = joined || len(casOf(t, registered())) == 2
			if replaced && !joined {
				t.Fatal("the new certificate is served before its CA is registered")
			}
		}
		if !replaced {
			t.Error("the certificate was not replaced in 10 minutes")
		}
		if n := len(casOf(t, registered())); n != 2 {
			t.Errorf("%d CAs are trusted, want the old one too for a day", n)
		}
	})
}

// TestRotationWaits: while nobody registers the new CA, the old certificate is served.
func TestRotationWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		leader := c.keeper()
		first := isDue(t, leader)
		bundle, _ := leader.Bundle()
		leader.Registered(bundle)
		start(t, leader)
		lead(t, leader)
		time.Sleep(time.Hour)
		synctest.Wait()
		if !servedBy(t, leader).Equal(first) {
			t.Error("a certificate is served whose CA nobody knows")
		}
		joined, _ := leader.Bundle()
		if n := len(casOf(t, joined)); n != 2 {
			t.Fatalf("%d CAs in the bundle, want old and new", n)
		}

		// Another replica leads now: it goes on where this one stopped.
		next := c.keeper()
		start(t, next)
		next.Registered(joined)
		lead(t, next)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if servedBy(t, next).Equal(first) || servedBy(t, leader).Equal(first) {
			t.Error("the old certificate is served though the new CA is registered")
		}
	})
}

// TestRotationDamagedNext: what waits to be served is made again if it is of no use.
func TestRotationDamagedNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		leader := c.keeper()
		isDue(t, leader)
		time.Sleep(time.Second)
		if err := leader.Rotation().advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := c.secret(t)
		s.Data[keyNextKey] = []byte("damaged")
		if err := c.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := leader.Rotation().advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		m, err := materialOf(c.secret(t))
		if err != nil || m.next == nil {
			t.Fatalf("nothing waits, error %v", err)
		}
		if err := m.next.check([]string{serviceName}, m.cas, time.Now()); err != nil {
			t.Error(err)
		}
	})
}

func TestRotationLeavesToKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		r := c.keeper().Rotation()
		if err := r.advance(t.Context()); err != nil {
			t.Errorf("without a Secret: %v", err)
		}
		c.fails = 1
		if err := r.advance(t.Context()); err == nil {
			t.Error("the API server refuses, and there is no error")
		}
	})
}
