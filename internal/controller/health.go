package controller

import (
	"fmt"
	"net/http"
	"sync"
)

// health says whether the replica can admit, and if not, what it waits for.
// Being alive is being able to say so.
type health struct {
	mu      sync.Mutex
	waiting string // empty: ready
}

func newHealth(waiting string) *health { return &health{waiting: waiting} }

func (h *health) wait(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = what
}

func (h *health) ready() { h.wait("") }

// handler serves /healthz and /readyz, and what is below them.
func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	alive := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }
	for _, path := range []string{"/healthz", "/healthz/"} {
		mux.HandleFunc("GET "+path, alive)
	}
	for _, path := range []string{"/readyz", "/readyz/"} {
		mux.HandleFunc("GET "+path, h.serveReady)
	}
	return mux
}

func (h *health) serveReady(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	waiting := h.waiting
	h.mu.Unlock()
	if waiting != "" {
		http.Error(w, "waiting for "+waiting, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}
