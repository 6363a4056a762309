package cnicall

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

// Handler does what a request asks. It is called for several requests at once.
// The context ends a little before the client stops waiting, when the client is
// gone, and when the server has waited for long enough after its own end.
type Handler func(ctx context.Context, request Request) Answer

// Limits bound what a server takes on. A zero value is replaced by what is said
// with it.
type Limits struct {
	Calls  int           // at once, but for STATUS, which waits for nobody; 64
	Read   time.Duration // for a request to come in whole, and for an answer to go out; 10 s
	Call   time.Duration // for a request whose client names no time; 10 min
	Drain  time.Duration // for calls to end by themselves after the server's end; 10 s
	Report func(error)   // told of refused peers, broken requests and panics; nobody
}

// lastWait is how long handlers have to end after their contexts did.
const lastWait = 2 * time.Second

func (l Limits) withDefaults() Limits {
	if l.Calls <= 0 {
		l.Calls = 64
	}
	for _, d := range []struct {
		value *time.Duration
		zero  time.Duration
	}{{&l.Read, 10 * time.Second}, {&l.Call, 10 * time.Minute}, {&l.Drain, 10 * time.Second}} {
		if *d.value <= 0 {
			*d.value = d.zero
		}
	}
	if l.Report == nil {
		l.Report = func(error) {}
	}
	return l
}

// server is one run of Serve.
type server struct {
	handler Handler
	limits  Limits
	slots   chan struct{}
	aborted chan struct{} // closed when no call is waited for any more
	open    sync.WaitGroup
}

// Serve answers calls at a listener of unix sockets, which it closes, until the
// context ends. It then takes no calls, waits for those that have begun, ends
// their contexts after Limits.Drain, and returns nil once all are answered. It
// returns an error if the listener fails, or if calls do not end.
//
// Peers must be root or of our own user. A handler that panics answers an error.
func Serve(ctx context.Context, listener net.Listener, handler Handler, limits Limits) error {
	limits = limits.withDefaults()
	ending, end := context.WithCancel(ctx)
	defer end()
	s := &server{handler: handler, limits: limits, slots: make(chan struct{}, limits.Calls), aborted: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() }) // the error is that of the next Close
	err := s.accept(ending, listener)
	stop()
	end()
	if ctx.Err() != nil {
		err = nil
	}
	if closing := listener.Close(); !errors.Is(closing, net.ErrClosed) {
		err = errors.Join(err, closing)
	}
	return errors.Join(err, s.drain())
}

// accept serves every connection in a goroutine of its own. Its context, and
// that of what it calls, ends with the server.
func (s *server) accept(ctx context.Context, listener net.Listener) error {
	var pause time.Duration
	for {
		conn, err := listener.Accept()
		if err == nil {
			pause = 0
			s.open.Go(func() { s.serve(ctx, conn) })
			continue
		}
		if !passes(err) {
			return err
		}
		s.limits.Report(fmt.Errorf("accept: %w", err))
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// passes tells errors of a peer or of a process that has run out of something from those of a listener.
func passes(err error) bool {
	for _, e := range []error{syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// drain waits for calls to end, and no longer than the limits say.
func (s *server) drain() error {
	done := make(chan struct{})
	go func() { s.open.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-time.After(s.limits.Drain):
	}
	close(s.aborted)
	select {
	case <-done:
		return nil
	case <-time.After(lastWait):
	}
	return fmt.Errorf("cni calls: some do not end, %v after they were told to", lastWait)
}

// serve answers the one request of a connection.
func (s *server) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	answer, err := s.converse(ctx, conn)
	if err != nil {
		s.limits.Report(err)
	}
	if answer == nil {
		return
	}
	message, err := encodeAnswer(*answer)
	if err != nil {
		s.limits.Report(err)
		message, err = encodeAnswer(failed(CodeInternal, "the agent's answer cannot be sent", err.Error()))
	}
	if err == nil {
		err = conn.SetWriteDeadline(time.Now().Add(s.limits.Read))
	}
	if err == nil {
		_, err = conn.Write(message)
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) { // a client that has gone knows
		s.limits.Report(fmt.Errorf("answer: %w", err))
	}
}

// converse reads a request and has it done. No answer is for who said nothing;
// the error is for our own administrator.
func (s *server) converse(ctx context.Context, conn net.Conn) (*Answer, error) {
	if err := allowed(conn); err != nil {
		refusal := failed(CodeInternal, "the agent refuses this caller", err.Error())
		return &refusal, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(s.limits.Read)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	body, err := readMessage(conn)
	if interrupted := !stop(); interrupted {
		return stopping(), nil
	}
	if err != nil {
		broken := failed(CodeDecode, "the agent cannot read the request", err.Error())
		return &broken, fmt.Errorf("read a request: %w", err)
	}
	request, left, err := decodeRequest(body)
	if err != nil {
		broken := failed(CodeDecode, "the agent cannot read the request", err.Error())
		return &broken, err
	}
	return s.call(ctx, conn, request, left)
}

// call waits for its turn and runs the handler, for as long as somebody wants it.
func (s *server) call(ending context.Context, conn net.Conn, request Request, left time.Duration) (*Answer, error) {
	if left <= 0 {
		left = s.limits.Call
	}
	enough := left - min(left/20, time.Second)
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ending), enough, fmt.Errorf("no time is left of %v", left))
	defer cancel()
	go func() {
		select {
		case <-s.aborted:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	go func() { // a client says no more: whatever comes is its end
		var one [1]byte
		_, _ = conn.Read(one[:])
		cancel()
	}()
	if request.Command != Status {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			busy := failed(CodeTryAgain, "the agent is busy", fmt.Sprintf("%d calls at once, and none ended in time", s.limits.Calls))
			return &busy, nil
		case <-ending.Done():
			return stopping(), nil
		}
	}
	return s.run(ctx, request)
}

// run calls the handler and turns its panic into an answer.
func (s *server) run(ctx context.Context, request Request) (answer *Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			a := failed(CodeInternal, "the agent panicked; its log says where", fmt.Sprint(p))
			answer = &a
			err = fmt.Errorf("%s of container %q: panic: %v\n%s", request.Command, request.ContainerID, p, debug.Stack())
		}
	}()
	a := s.handler(ctx, request)
	return &a, nil
}

func failed(code uint, msg, details string) Answer {
	return Answer{Error: &Error{Code: code, Msg: msg, Details: details}}
}

func stopping() *Answer {
	a := failed(CodeTryAgain, "the agent is stopping", "")
	return &a
}

// allowed asks the kernel who is at the other end.
func allowed(conn net.Conn) error {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("peer: a connection of %T, want one of a unix socket", conn)
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return fmt.Errorf("peer: %w", err)
	}
	var peer *syscall.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) {
		peer, asked = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = errors.Join(err, asked); err != nil {
		return fmt.Errorf("peer: %w", err)
	}
	return allowedUser(peer, os.Geteuid())
}

func allowedUser(peer *syscall.Ucred, own int) error {
	if peer.Uid == 0 || int(peer.Uid) == own {
		return nil
	}
	return fmt.Errorf("peer: process %d of user %d, want root or user %d", peer.Pid, peer.Uid, own)
}
