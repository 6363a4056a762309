// Package webhook answers the API server's admission requests: it fills in
// defaults, refuses objects that break rules, and injects networks into pods. It
// decodes, asks internal/policy and answers; it has no rule of its own and writes
// nothing, so that a dry run is as any other.
//
// Source: admission/v1 of Kubernetes.
package webhook

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"railhead/internal/policy"
)

// Paths that a Server answers.
const (
	pathMutate     = "/mutate"
	pathValidate   = "/validate"
	pathPods       = "/mutate--v1-pod"
	pathNamespaces = "/mutate--v1-namespace"
)

// Options of a Server. All are required.
type Options struct {
	Catalog    *policy.Catalog
	Namespaces *Namespaces
	Log        *slog.Logger
	Registry   prometheus.Registerer
}

// Server answers admission requests. It is safe for concurrent use, and keeps
// nothing of a request.
type Server struct {
	catalog    *policy.Catalog
	namespaces *Namespaces
	log        *slog.Logger
	metrics    *metrics
	mux        *http.ServeMux
}

// New returns a Server whose metrics are in o.Registry.
func New(o Options) *Server {
	s := &Server{
		catalog:    o.Catalog,
		namespaces: o.Namespaces,
		log:        o.Log,
		metrics:    newMetrics(o.Registry),
		mux:        http.NewServeMux(),
	}
	s.mux.Handle("POST "+pathMutate, s.handler("mutate", s.mutate))
	s.mux.Handle("POST "+pathValidate, s.handler("validate", s.validate))
	s.mux.Handle("POST "+pathPods, s.handler("pods", s.inject))
	s.mux.Handle("POST "+pathNamespaces, s.handler("namespaces", s.mark))
	return s
}

// ServeHTTP answers one admission request. Whoever serves it does TLS.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }
