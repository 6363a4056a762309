package address

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaiting wants it to be known what a pod waits for, with the pool, the reason
// and what is done about it, while it waits and no longer.
func TestWaiting(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		identity string
		change   func(*fixture)
		want     []string
	}{
		"short":                {"", func(*fixture) {}, []string{"no address: interface net1: pool rail0: all addresses are held, 1 lack; the node has asked the controller for more"}},
		"API server away":      {"", func(f *fixture) { f.api.Leave() }, []string{"interface net1: pool rail0: ", "the controller cannot be asked: AddressLease n1 cannot be written"}},
		"endpoint not written": {web0, func(f *fixture) { f.api.Refuse("create "+endpointsPath, http.StatusServiceUnavailable) }, []string{"it has net1 10.0.0.1/24, which its SpiderEndpoint ai/b has to say first"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(newController(0, 1))
				r := f.ready(t)
				if test.identity == "" {
					r.assign(t, f.pod("a", "rail0")) // the one address that there is
				}
				test.change(f)
				request := f.pod("b", "rail0")
				request.Identity = test.identity
				if why := r.Waiting(request.Key); why != nil {
					t.Errorf("before it asks it waits for: %v", why)
				}
				ctx, cancel := context.WithCancel(t.Context())
				answer := make(chan error, 1)
				go func() {
					_, err := r.Assign(ctx, request)
					answer <- err
				}()
				time.Sleep(5 * time.Second)
				why := r.Waiting(request.Key)
				for _, part := range test.want {
					if why == nil || !strings.Contains(why.Error(), part) {
						t.Errorf("it waits for: %v, want %q in it", why, part)
					}
				}
				cancel()
				<-answer
				if why := r.Waiting(request.Key); why != nil {
					t.Errorf("after its answer it waits for: %v", why)
				}
			})
		})
	}
}
