package ipambench

import (
	"context"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Traffic counts what some clients exchange with the API server: requests where
// they are made, and bytes on the connection, with TLS and headers, as a network
// would carry them. It is safe for concurrent use.
type Traffic struct {
	up, down atomic.Int64

	held sync.RWMutex // by requests, for a moment, and by Hold

	mu       sync.Mutex
	requests map[string]int
}

// Sum is what was counted until some moment.
type Sum struct {
	Requests map[string]int // by method and resource, such as "PUT addressleases"; a watch is one of method WATCH
	Bytes    int64          // both ways
}

// Client is a copy of a configuration with a connection of its own, as that of
// another machine, which this counts, and with no limit to requests a second.
func (t *Traffic) Client(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	dialer := &net.Dialer{}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{connection, t}, nil
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &countedTransport{next, t} })
	return config
}

// Sum is what was counted so far.
func (t *Traffic) Sum() Sum {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Sum{Requests: maps.Clone(t.requests), Bytes: t.up.Load() + t.down.Load()}
}

// Hold keeps all requests from now on waiting until the function that it returns
// is called. What goes on meanwhile needs none.
func (t *Traffic) Hold() (letGo func()) {
	t.held.Lock()
	return sync.OnceFunc(t.held.Unlock)
}

// Since is what came on top of an earlier sum.
func (s Sum) Since(earlier Sum) Sum {
	rest := Sum{Requests: map[string]int{}, Bytes: s.Bytes - earlier.Bytes}
	for what, n := range s.Requests {
		if n -= earlier.Requests[what]; n > 0 {
			rest.Requests[what] = n
		}
	}
	return rest
}

// Count is how many requests have these words in their method and resource, each
// of them in one of both: Count("PUT", "addressleases").
func (s Sum) Count(words ...string) int {
	total := 0
	for what, n := range s.Requests {
		fits := true
		for _, word := range words {
			fits = fits && strings.Contains(what, word)
		}
		if fits {
			total += n
		}
	}
	return total
}

func (t *Traffic) count(r *http.Request) {
	method := r.Method
	if r.URL.Query().Get("watch") != "" {
		method = "WATCH"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.requests == nil {
		t.requests = map[string]int{}
	}
	t.requests[method+" "+resourceOf(r.URL.Path)]++
}

// resourceOf is the resource of a path of the API, with its subresource.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch { // drop the group and version: api/v1, or apis/group/version
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return path
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}

type countedTransport struct {
	next    http.RoundTripper
	traffic *Traffic
}

// RoundTrip implements http.RoundTripper.
func (c *countedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c.traffic.held.RLock()
	c.traffic.held.RUnlock() //nolint:staticcheck // whoever gets here need not wait
	c.traffic.count(r)
	return c.next.RoundTrip(r)
}

type countedConn struct {
	net.Conn
	traffic *Traffic
}

// Read implements net.Conn.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.traffic.down.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.traffic.up.Add(int64(n))
	return n, err
}
