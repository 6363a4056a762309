package api

import (
	"errors"
	"net/http"
	"sync"
)

// errCut is what a request gets once the connection is cut.
var errCut = errors.New("the connection is cut: this replica was killed")

// Fuse lets a number of writes through and then cuts the connection to the API
// server: no request of any kind passes any more, as of a process that was
// killed.
type Fuse struct {
	mu   sync.Mutex
	left int
	cut  bool
}

// NewFuse is a Fuse that lets n writes through.
func NewFuse(n int) *Fuse { return &Fuse{left: n} }

// Around is a transport with the fuse in it.
func (f *Fuse) Around(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if !f.pass(r.Method != http.MethodGet) {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, errCut
		}
		return next.RoundTrip(r)
	})
}

func (f *Fuse) pass(write bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if write && f.left == 0 {
		f.cut = true
	}
	if write {
		f.left--
	}
	return !f.cut
}

// Blown says whether the connection is cut.
func (f *Fuse) Blown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cut
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
