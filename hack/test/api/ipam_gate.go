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

// gate stands between a controller and the API server, and has it killed at one
// of its writes of ledgers and leases (TestKilled is about others): before it reaches the API server, when it was sent there,
// or when it was answered and the process does not know it yet.
type gate struct {
	url   string // what the process takes for the API server
	doom  Doom
	kill  func() // ends once the process is dead
	next  http.RoundTripper
	count atomic.Int64
	once  sync.Once
}

// addressesPath is where ledgers and leases are.
const addressesPath = "/apis/railhead.io/"

// newGate is a gate to the API server, as the user of config. What kill does has
// to be set before the process starts.
func newGate(tb testing.TB, config *rest.Config, doom Doom) *gate {
	tb.Helper()
	next, err := rest.TransportFor(config)
	if err != nil {
		tb.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		tb.Fatal(err)
	}
	g := &gate{doom: doom, next: next}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     roundTrip(g.pass),
		FlushInterval: -1, // watches go on at once
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewServer(proxy)
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	g.url = server.URL
	return g
}

func (g *gate) pass(r *http.Request) (*http.Response, error) {
	isCounted := r.Method != http.MethodGet && strings.HasPrefix(r.URL.Path, addressesPath)
	if !isCounted || g.count.Add(1) != int64(g.doom.At) {
		return g.next.RoundTrip(r)
	}
	switch g.doom.When {
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
