package controller

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"railhead/internal/webhook/registration"
)

// TestWithin wants what ends to be waited for, and what does not end to be left
// after a while, which is logged.
func TestWithin(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, takes := range map[string]time.Duration{"at once": 0, "in time": leaveTimeout - 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				err := within(ctx, leaveTimeout, slog.New(slog.DiscardHandler), func(context.Context) error {
					time.Sleep(takes)
					return failed
				})
				if !errors.Is(err, failed) {
					t.Errorf("error %v, want that of what ran", err)
				}
			})
		})
	}
	t.Run("never", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began, hangs := time.Now(), make(chan struct{})
			var said bytes.Buffer
			err := within(ctx, leaveTimeout, slog.New(slog.NewTextHandler(&said, nil)), func(context.Context) error {
				<-hangs
				return nil
			})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Hour+leaveTimeout {
				t.Errorf("error %v after %s", err, time.Since(began))
			}
			if !strings.Contains(said.String(), "the lease was not given back") {
				t.Errorf("logged %q", said.String())
			}
			close(hangs)
		})
	})
}

// TestCacheOfRegistrations wants no webhook configurations of others in memory.
func TestCacheOfRegistrations(t *testing.T) {
	t.Parallel()
	found := 0
	for object, by := range (&controller{}).cacheOptions().ByObject {
		switch object.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration:
			found++
			if by.Field == nil || by.Field.String() != "metadata.name="+registration.Name {
				t.Errorf("of %T it holds %v", object, by.Field)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d kinds of webhook configurations, want 2", found)
	}
}
