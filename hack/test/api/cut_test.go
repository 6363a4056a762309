package api

import (
	"errors"
	"net/http"
	"sync"
)

// errCut is what a request gets once the connection is cut.
var errCut = errors.New("the connection is cut: this replica was killed")

// cutOff lets a number of writes through and then cuts the connection to the API
// server: no request of any kind passes any more, as of a process that was killed.
type cutOff struct {
	mu   sync.Mutex
	left int
	cut  bool
}

// around is a transport that is cut off.
func (c *cutOff) around(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if !c.pass(r.Method != http.MethodGet) {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, errCut
		}
		return next.RoundTrip(r)
	})
}

func (c *cutOff) pass(write bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if write && c.left == 0 {
		c.cut = true
	}
	if write {
		c.left--
	}
	return !c.cut
}

// isCut says whether a write has not passed.
func (c *cutOff) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
