package address

import (
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"railhead/api/railhead/v1alpha1"
)

// annotate is kubectl annotate of a ledger, to release addresses.
func (s *stage) annotate(t *testing.T, name, word string) {
	t.Helper()
	ledger := s.ledger(t, name)
	before := ledger.DeepCopy()
	metav1.SetMetaDataAnnotation(&ledger.ObjectMeta, v1alpha1.AnnotationRelease, word)
	if err := s.api.Patch(t.Context(), ledger, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// delete is kubectl delete.
func (s *stage) delete(t *testing.T, o client.Object) {
	t.Helper()
	if err := s.api.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// ledger is a ledger as the API server has it, nil if there is none.
func (s *stage) ledger(t *testing.T, name string) *v1alpha1.PoolLedger {
	t.Helper()
	ledger := &v1alpha1.PoolLedger{}
	switch err := s.api.Get(t.Context(), client.ObjectKey{Name: name}, ledger); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		t.Fatal(err)
	}
	return ledger
}

// said is the Events up to now.
func (s *stage) said() (all []string) {
	for {
		select {
		case text := <-s.events.Events:
			all = append(all, text)
		default:
			return all
		}
	}
}

func quarantinedLedger() *v1alpha1.PoolLedger {
	ledger := testLedger(
		v1alpha1.Run{Addresses: "10.0.0.1-10.0.0.4", Epoch: 7, Quarantine: &v1alpha1.Quarantine{Reason: "node is gone"}},
		v1alpha1.Run{Addresses: "10.0.0.9", Epoch: 7, Identity: "StatefulSet/ns/web/0"})
	ledger.Finalizers = []string{v1alpha1.Finalizer}
	return ledger
}

// TestReleaseByAnnotation wants an administrator's word on a ledger done at once,
// and Events that say what was done and what was not.
func TestReleaseByAnnotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, fakeAPI(t, interceptor.Funcs{}, testPool(), quarantinedLedger()))
		end := s.begin(t)
		for _, o := range []client.Object{testPool(), testLedger()} {
			s.hear(t, o)
		}
		time.Sleep(time.Second)
		s.annotate(t, "rail0", "10.0.0.2-10.0.0.9")
		s.hear(t, testLedger())
		time.Sleep(100 * time.Millisecond)
		ledger := s.ledger(t, "rail0")
		var runs []string
		for _, run := range ledger.Spec.Runs {
			runs = append(runs, run.Addresses)
		}
		if word, ok := ledger.Annotations[v1alpha1.AnnotationRelease]; ok || !slices.Equal(runs, []string{"10.0.0.1", "10.0.0.9"}) {
			t.Errorf("held are %v, the word is %q", runs, word)
		}
		if diff := cmp.Diff([]string{
			"Normal Released released 3 addresses from quarantine: 10.0.0.2-10.0.0.4",
			"Warning NotReleased railhead.io/release: not released: 10.0.0.9 (kept for StatefulSet/ns/web/0); 10.0.0.5-10.0.0.8 (free already)",
		}, s.said()); diff != "" {
			t.Error(diff)
		}
		s.hear(t, ledger)
		time.Sleep(2 * resync)
		if diff := cmp.Diff([]string(nil), s.said()); diff != "" {
			t.Errorf("Events of rounds in which nothing changed: %s", diff)
		}
		end()
	})
}

// TestDeletedLedger wants a ledger that somebody deletes to stay while its pool
// is there, and while anybody has addresses of it; and else to go at once.
func TestDeletedLedger(t *testing.T) {
	t.Parallel()
	spent := quarantinedLedger()
	spent.Spec.Runs = spent.Spec.Runs[:1]
	held := quarantinedLedger()
	held.Spec.Runs[1] = v1alpha1.Run{Addresses: "10.0.0.9", Epoch: 7, Node: "node1"}
	for name, tt := range map[string]struct {
		objects []client.Object
		stays   bool
	}{
		"pool there": {[]client.Object{spent, testPool()}, true},
		"held":       {[]client.Object{held, testNode("node1", "1")}, true},
		"spent":      {[]client.Object{spent}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, fakeAPI(t, interceptor.Funcs{}, tt.objects...))
				end := s.begin(t)
				for _, o := range tt.objects {
					s.hear(t, o)
				}
				time.Sleep(time.Second)
				s.delete(t, testLedger())
				s.hear(t, testLedger())
				time.Sleep(100 * time.Millisecond)
				if ledger := s.ledger(t, "rail0"); (ledger != nil) != tt.stays {
					t.Errorf("there is %+v", ledger)
				}
				end()
			})
		})
	}
}

// TestLedgerDeletedByForce wants a ledger made again at once that somebody took
// the finalizer from, and an Event of it.
func TestLedgerDeletedByForce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		objects := []client.Object{testPool(), asking("node1"), testNode("node1", "1")}
		s := newStage(t, fakeAPI(t, interceptor.Funcs{}, objects...))
		end := s.begin(t)
		for _, o := range objects {
			s.hear(t, o)
		}
		time.Sleep(time.Second)
		before := s.ledger(t, "rail0")
		s.hear(t, before)
		time.Sleep(time.Second)
		bare := before.DeepCopy()
		bare.Finalizers = nil
		if err := s.api.Update(t.Context(), bare); err != nil {
			t.Fatal(err)
		}
		s.delete(t, bare)
		s.handlers[reflect.TypeOf(bare)].Delete(t.Context(), event.DeleteEvent{Object: bare}, nil)
		time.Sleep(100 * time.Millisecond)
		after := s.ledger(t, "rail0")
		if after == nil || after.Annotations["railhead.io/rebuilding"] != "" || len(after.Spec.Runs) == 0 || after.Spec.Runs[0].Node != "node1" {
			t.Errorf("before %+v\nafter %+v", before, after)
		}
		if diff := cmp.Diff([]string{
			"Warning Rebuilding was deleted by force: it is made again from the leases, and gives nothing until all of them were written",
			"Normal Rebuilt was made again after its loss, and gives addresses",
		}, s.said()); diff != "" {
			t.Error(diff)
		}
		end()
	})
}
