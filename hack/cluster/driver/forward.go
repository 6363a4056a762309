package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"railhead/internal/kernel/netns"
)

// forwarder passes connections to a port of 127.0.0.1 on to an address that
// only a machine's network namespace reaches. The host gets no link for it.
type forwarder struct {
	machine  string
	target   string
	open     func() (*netns.NS, error) // a machine that was booted anew has another namespace
	listener net.Listener
	stop     context.CancelFunc
	handlers sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil when closed
}

func newForwarder(machine string, open func() (*netns.NS, error), target string) (*forwarder, error) {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, fmt.Errorf("forward to %q: want ADDRESS:PORT: %w", target, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		stop()
		return nil, err
	}
	f := &forwarder{machine: machine, target: target, open: open, listener: listener, stop: stop, conns: map[net.Conn]struct{}{}}
	f.handlers.Go(func() { f.accept(ctx) })
	return f, nil
}

// Addr is where it listens.
func (f *forwarder) Addr() string { return f.listener.Addr().String() }

// Close ends all connections.
func (f *forwarder) Close() error {
	f.stop()
	err := f.listener.Close()
	f.mu.Lock()
	f.dropLocked()
	f.conns = nil
	f.mu.Unlock()
	f.handlers.Wait()
	return err
}

// drop ends the connections that there are. One to a machine that has ended
// would wait for it forever, and keep its namespace alive.
func (f *forwarder) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropLocked()
}

func (f *forwarder) dropLocked() {
	for c := range f.conns {
		_ = c.Close()
	}
}

// acceptPause is the time until the next attempt when there is no room for a
// connection.
const acceptPause = 50 * time.Millisecond

func (f *forwarder) accept(ctx context.Context) {
	for {
		conn, err := f.listener.Accept()
		switch {
		case err == nil:
			f.handlers.Go(func() { f.pass(ctx, conn) })
		case errors.Is(err, net.ErrClosed):
			return
		default: // too many open files
			select {
			case <-time.After(acceptPause):
			case <-ctx.Done():
			}
		}
	}
}

// pass copies both ways until both have ended.
func (f *forwarder) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := f.dial(ctx)
	if err != nil {
		return // the client sees its connection end
	}
	defer server.Close()
	if !f.keep(client, server) {
		return
	}
	defer f.forget(client, server)
	var both sync.WaitGroup
	both.Go(func() { oneWay(server, client) })
	both.Go(func() { oneWay(client, server) })
	both.Wait()
}

// oneWay copies until the source ends, and tells the destination so.
func oneWay(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(*net.TCPConn); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
}

// dial connects from within the namespace. The socket stays there when the
// thread has left it.
func (f *forwarder) dial(ctx context.Context) (net.Conn, error) {
	ns, err := f.open()
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	var conn net.Conn
	err = ns.Do(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", f.target)
		return err
	})
	return conn, err
}

func (f *forwarder) keep(conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns == nil {
		return false
	}
	for _, c := range conns {
		f.conns[c] = struct{}{}
	}
	return true
}

func (f *forwarder) forget(conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		delete(f.conns, c)
	}
}
