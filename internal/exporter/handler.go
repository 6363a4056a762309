package exporter

import (
	"io"
	"net/http"

	"github.com/prometheus/exporter-toolkit/web"
)

// Handler serves /metrics, /healthz (the process is alive), /readyz (every
// network card was read once; else 503 and why not) and a page with links to
// them.
func (e *Exporter) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", e.serveMetrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if reason := e.notReady(); reason != "" {
			http.Error(w, reason, http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.Handle("GET /", e.landing)
	return mux
}

func newLandingPage(version string) (http.Handler, error) {
	return web.NewLandingPage(web.LandingConfig{
		Name:        "Railhead",
		Description: "RDMA devices of this node and whose they are",
		Version:     version,
		Profiling:   "false",
		Links: []web.LandingLinks{
			{Address: "metrics", Text: "Metrics"},
			{Address: "healthz", Text: "Health", Description: "whether the process is alive"},
			{Address: "readyz", Text: "Readiness", Description: "whether every network card was read once"},
		},
	})
}
