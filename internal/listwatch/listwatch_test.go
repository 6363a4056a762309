package listwatch

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// apiServer answers as often as it has answers, and then not at all. An answer of
// nil is a good one.
type apiServer struct {
	answers []error
	after   time.Duration // it takes so long

	mu    sync.Mutex
	noted []string
	ended atomic.Bool // the watch that it answered with
}

func (a *apiServer) answer(ctx context.Context) error {
	if len(a.answers) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(a.after)
	err := a.answers[0]
	a.answers = a.answers[1:]
	return err
}

func (a *apiServer) questions() Questions {
	return Questions{
		List: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			return &metav1.PartialObjectMetadataList{}, a.answer(ctx)
		},
		Watch: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			if err := a.answer(ctx); err != nil {
				return nil, err
			}
			context.AfterFunc(ctx, func() { a.ended.Store(true) })
			return watch.NewFake(), nil
		},
		Note: func(err error) func() {
			return func() {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.noted = append(a.noted, reasonOf(err))
			}
		},
	}
}

func reasonOf(err error) string {
	switch {
	case err == nil:
		return "told"
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		return string(apierrors.ReasonForError(err))
	}
	return err.Error()
}

func status(code int) error {
	return apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{Resource: "pods"}, "", "", 0, true)
}

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// TestNote asks in turn and wants to be told why nothing is told, and how long a
// question takes at most.
func TestNote(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers []error
		after   time.Duration
		list    bool
		want    []string
		most    time.Duration
		err     error
	}{
		"a list says nothing":          {answers: []error{nil}, list: true},
		"a watch is told":              {answers: []error{nil}, want: []string{"told"}},
		"late":                         {answers: []error{nil}, after: time.Minute, want: []string{"no answer for 10s", "told"}, most: time.Minute},
		"a late list":                  {answers: []error{nil}, after: time.Minute, list: true, want: []string{"no answer for 10s"}, most: time.Minute},
		"never":                        {want: []string{"no answer for 10s"}, most: patience, err: context.Canceled},
		"never a list":                 {list: true, want: []string{"no answer for 10s", "context deadline exceeded"}, most: patience, err: context.DeadlineExceeded},
		"not ours to see":              {answers: []error{status(http.StatusForbidden)}, want: []string{"Forbidden"}, err: status(http.StatusForbidden)},
		"a list not ours":              {answers: []error{status(http.StatusForbidden)}, list: true, want: []string{"Forbidden"}, err: status(http.StatusForbidden)},
		"forgotten":                    {answers: []error{status(http.StatusGone)}, err: status(http.StatusGone)},
		"older than our question":      {answers: []error{status(http.StatusUnprocessableEntity)}, err: status(http.StatusUnprocessableEntity)},
		"away, busy, and there again":  {answers: []error{errRefused, status(http.StatusTooManyRequests), nil}, want: []string{errRefused.Error(), "TooManyRequests", "told"}, most: 6 * time.Second},
		"a list of one that went away": {answers: []error{errRefused, nil}, list: true, want: []string{errRefused.Error()}, err: errRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &apiServer{answers: test.answers, after: test.after}
				asked := a.questions().ListWatch()
				began := time.Now()
				var err error
				if test.list {
					_, err = asked.ListWithContextFunc(t.Context(), metav1.ListOptions{})
				} else {
					var w watch.Interface
					if w, err = asked.WatchFuncWithContext(t.Context(), metav1.ListOptions{}); err == nil {
						w.Stop()
					}
				}
				if took := time.Since(began); took > test.most {
					t.Errorf("it took %v, want %v at most", took, test.most)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if reasonOf(err) != reasonOf(test.err) {
					t.Errorf("error %v, want %v", err, test.err)
				}
				if diff := cmp.Diff(test.want, a.noted); diff != "" {
					t.Errorf("noted (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestWatchEnds wants a watch to end when it lasts longer than was asked for, and
// at once when it is stopped.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stop bool
		till time.Duration
	}{
		"nobody ends it": {till: 5*time.Minute + patience},
		"it is stopped":  {stop: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &apiServer{answers: []error{nil}}
				w, err := a.questions().ListWatch().WatchFuncWithContext(t.Context(), metav1.ListOptions{TimeoutSeconds: new(int64(300))})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if a.ended.Load() {
					t.Fatal("it ended at once")
				}
				if test.stop {
					w.Stop()
				} else {
					time.Sleep(test.till - time.Nanosecond)
					synctest.Wait()
					if a.ended.Load() {
						t.Errorf("it ended before %v", test.till)
					}
					time.Sleep(time.Nanosecond)
				}
				synctest.Wait()
				if !a.ended.Load() {
					t.Errorf("it goes on after %v", test.till)
				}
			})
		})
	}
}

// TestEndsAtOnce ends the wait for an API server that is away.
func TestEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := &apiServer{answers: []error{errRefused, errRefused, errRefused, errRefused}}
		time.AfterFunc(5*time.Second, cancel)
		began := time.Now()
		_, err := a.questions().ListWatch().WatchFuncWithContext(ctx, metav1.ListOptions{})
		if took := time.Since(began); !errors.Is(err, context.Canceled) || took != 5*time.Second {
			t.Errorf("error %v after %v, want %v after 5s", err, took, context.Canceled)
		}
	})
}

// TestNoteMayTakeItsTime wants an answer that comes while the line about the
// silence before it is still being written, as in a log that nobody reads.
func TestNoteMayTakeItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &apiServer{answers: []error{nil}, after: time.Minute}
		q := a.questions()
		var noted []string
		q.Note = func(err error) func() {
			noted = append(noted, reasonOf(err))
			return func() {
				if err != nil {
					time.Sleep(time.Hour)
				}
			}
		}
		began := time.Now()
		w, err := q.ListWatch().WatchFuncWithContext(t.Context(), metav1.ListOptions{})
		if took := time.Since(began); err != nil || took != time.Minute {
			t.Fatalf("error %v after %v, want none after a minute", err, took)
		}
		w.Stop()
		if diff := cmp.Diff([]string{"no answer for 10s", "told"}, noted); diff != "" {
			t.Errorf("noted (-want +got):\n%s", diff)
		}
		time.Sleep(2 * time.Hour) // until the line is written
	})
}
