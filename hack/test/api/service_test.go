package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// service is what a Service with readiness probes is in a cluster: it sends new
// connections to the replicas that were ready when asked last, in turn, and
// leaves open connections alone, as kube-proxy does.
type service struct {
	turn  atomic.Uint64
	ready []atomic.Bool
	only  atomic.Int64 // the replica that all new connections go to; -1: any

	mu   sync.Mutex
	open map[net.Conn]bool
}

// probe is how often a replica is asked whether it is ready, and how long its
// answer may take.
const probe = time.Second

// newService has an address stand for a Service of replicas until the test ends. The
// function that it returns ends all connections and has one replica get the next
// ones; if it is negative, the next ones go to any and nothing ends.
func newService(t *testing.T, address string, replicas ...*Process) (only func(replica int)) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{ready: make([]atomic.Bool, len(replicas)), open: map[net.Conn]bool{}}
	s.only.Store(-1)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
	})
	for i, r := range replicas {
		go s.watch(ctx, i, r.HealthAddress)
	}
	go s.accept(ctx, listener, replicas)
	return s.prefer
}

func (s *service) prefer(replica int) {
	s.only.Store(int64(replica))
	if replica < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for connection := range s.open {
		_ = connection.Close()
	}
}

func (s *service) keep(connection net.Conn, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open {
		s.open[connection] = true
	} else {
		delete(s.open, connection)
		_ = connection.Close()
	}
}

// next is the replica of a new connection; -1 if none is ready.
func (s *service) next() int {
	only := int(s.only.Load())
	for range s.ready {
		i := int(s.turn.Add(1)) % len(s.ready)
		if s.ready[i].Load() && (only < 0 || only == i) {
			return i
		}
	}
	return -1
}

func (s *service) watch(ctx context.Context, i int, address string) {
	client := &http.Client{Timeout: probe, Transport: &http.Transport{DisableKeepAlives: true}}
	for ; ctx.Err() == nil; time.Sleep(probe) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
		if err != nil {
			return
		}
		answer, err := client.Do(request)
		s.ready[i].Store(err == nil && answer.StatusCode == http.StatusOK)
		if err == nil {
			_ = answer.Body.Close()
		}
	}
}

func (s *service) accept(ctx context.Context, listener net.Listener, replicas []*Process) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		s.keep(connection, true)
		go func() {
			defer s.keep(connection, false)
			if i := s.next(); i >= 0 {
				join(ctx, connection, "tcp", replicas[i].WebhookAddress)
			}
		}()
	}
}

// join copies both ways until one side or the test ends.
func join(ctx context.Context, connection net.Conn, network, address string) {
	other, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return
	}
	defer other.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = connection.Close()
		_ = other.Close()
	})
	defer stop()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{connection, other}, {other, connection}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
}
