package driver

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"time"
)

// Serve takes orders on the directory's socket until the context ends, or the
// cluster does by itself: the error is [ErrFabricEnded] then. It calls ready
// once orders are taken. The caller closes the cluster afterwards.
func (c *Cluster) Serve(ctx context.Context, ready func() error) error {
	ctx, stop := c.whileFabric(ctx)
	defer stop()
	err := c.serve(ctx, ready)
	if cause := context.Cause(ctx); errors.Is(cause, ErrFabricEnded) {
		return errors.Join(cause, err)
	}
	return err
}

// answerLimit is how long orders that are being carried out may take to come
// to an end when all does: one that boots a node ends the machine first. It
// leaves the rest of endPatience for the others.
const answerLimit = 15 * time.Second

func (c *Cluster) serve(ctx context.Context, ready func() error) error {
	listener, err := c.listen(ctx)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           c.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // orders end with it
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if err := ready(); err != nil {
		err = errors.Join(err, server.Close())
		<-served
		return err
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
	defer cancel()
	err = server.Shutdown(limit)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // what is still being done ends with the machines
	}
	<-served // the socket is gone then
	return err
}

// listen makes the socket. Who may write to it is root on this machine.
func (c *Cluster) listen(ctx context.Context) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", c.dir.Socket())
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(c.dir.Socket(), 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

func (c *Cluster) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", c.serveStatus)
	mux.HandleFunc("POST /orders", c.serveOrder)
	return mux
}

func (c *Cluster) serveStatus(w http.ResponseWriter, _ *http.Request) {
	s, err := c.Status() //nolint:contextcheck // a machine answers at once, or has ended
	if err != nil {
		answer(w, http.StatusInternalServerError, outcome{Error: err.Error()})
		return
	}
	answer(w, http.StatusOK, s)
}

func (c *Cluster) serveOrder(w http.ResponseWriter, r *http.Request) {
	var o Order
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&o); err != nil {
		answer(w, http.StatusBadRequest, outcome{Error: "order: " + err.Error()})
		return
	}
	said, err := c.carryOut(r.Context(), o)
	if err != nil {
		answer(w, http.StatusUnprocessableEntity, outcome{Error: err.Error()})
		return
	}
	answer(w, http.StatusOK, outcome{Said: said})
}

// outcome is the answer to an order.
type outcome struct {
	Said  string `json:"said,omitempty"`
	Error string `json:"error,omitempty"`
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
