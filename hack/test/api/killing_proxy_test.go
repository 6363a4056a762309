package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// killingProxy stands between a controller and the API server, and has it killed at one
// of its writes of ledgers and leases (TestKilled is about others): before it reaches the API server, when it was sent there,
// or when it was answered and the process does not know it yet.
type killingProxy struct {
	url   string // what the process takes for the API server
	point KillPoint
	kill  func() // ends once the process is dead
	next  http.RoundTripper
	count atomic.Int64
	once  sync.Once
}

// addressesPath is where ledgers and leases are.
const addressesPath = "/apis/railhead.io/"

// newKillingProxy is a way to the API server, as the user of config. What kill does has
// to be set before the process starts.
func newKillingProxy(t *testing.T, config *rest.Config, point KillPoint) *killingProxy {
	t.Helper()
	next, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	g := &killingProxy{point: point, next: next}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     roundTrip(g.pass),
		FlushInterval: -1, // watches go on at once
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	g.url = server.URL
	return g
}

func (g *killingProxy) pass(r *http.Request) (*http.Response, error) {
	isCounted := r.Method != http.MethodGet && strings.HasPrefix(r.URL.Path, addressesPath)
	if !isCounted || g.count.Add(1) != int64(g.point.At) {
		return g.next.RoundTrip(r)
	}
	switch g.point.When {
	case Before:
		g.once.Do(g.kill)
		return nil, errCut
	case Between:
		sent := func(httptrace.WroteRequestInfo) { g.once.Do(g.kill) }
		// The process that is dead does not take its request back.
		ctx := httptrace.WithClientTrace(context.WithoutCancel(r.Context()), &httptrace.ClientTrace{WroteRequest: sent})
		r = r.WithContext(ctx)
	default:
		r = r.WithContext(context.WithoutCancel(r.Context()))
	}
	response, err := g.next.RoundTrip(r)
	g.once.Do(g.kill)
	if err == nil {
		_ = response.Body.Close()
	}
	return nil, errCut
}
