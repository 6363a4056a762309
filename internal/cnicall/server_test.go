package cnicall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// served is a server and what it reported.
type served struct {
	socket string
	stop   context.CancelFunc
	done   chan error // what Serve returned

	mu      sync.Mutex
	reports []string
}

func (s *served) report(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, err.Error())
}

func (s *served) reported() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.reports, "\n")
}

// serve starts a server that ends with the test.
func serve(t *testing.T, handler Handler, limits Limits) *served {
	t.Helper()
	s := &served{socket: filepath.Join(t.TempDir(), "run", "cni.sock"), done: make(chan error, 1)}
	l, err := Listen(s.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	limits.Report = s.report
	go func() { s.done <- Serve(ctx, l, handler, limits) }()
	t.Cleanup(func() {
		cancel()
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(filepath.Dir(s.socket)); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return s
}

// wait ends the server and puts its error back for the cleanup.
func (s *served) wait() error {
	err := <-s.done
	s.done <- nil
	return err
}

func echo(_ context.Context, r Request) Answer {
	said, err := encode("echo", r)
	if err != nil {
		return failed(CodeInternal, "cannot echo", err.Error())
	}
	return Answer{Output: said[headerLength:]}
}

func TestCall(t *testing.T) {
	t.Parallel()
	s := serve(t, echo, Limits{})
	info, err := os.Stat(s.socket)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("socket: %v, %v", info.Mode(), err)
	}
	var calls sync.WaitGroup
	for i := range 50 {
		calls.Go(func() {
			want := exampleRequest
			want.ContainerID = fmt.Sprint(i)
			answer, err := Call(t.Context(), s.socket, want)
			if err != nil || answer.Error != nil {
				t.Errorf("%v, %v", err, answer.Error)
				return
			}
			var got Request
			if err := json.Unmarshal(answer.Output, &got); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
	calls.Wait()
	if got := s.reported(); got != "" {
		t.Errorf("reported %s", got)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	big := json.RawMessage(`"` + strings.Repeat("x", MaxMessage) + `"`)
	long := strings.Repeat("€", MaxMessage)
	beginning := strings.Repeat("€", MostText/len("€"))
	s := serve(t, func(_ context.Context, r Request) Answer {
		switch r.ContainerID {
		case "error":
			return failed(CodeTryAgain, "later", "why")
		case "long":
			return failed(CodeConfig, long, long+"!")
		case "just":
			return failed(CodeConfig, long[:3*(MostText/3)], "x"+long[:3*(MostText/3)])
		case "panic":
			panic("at the disco")
		case "big":
			return Answer{Output: big}
		case "both":
			return Answer{Output: json.RawMessage("1"), Error: &Error{Code: 7}}
		}
		return Answer{}
	}, Limits{})
	for _, c := range []struct {
		container, report string
		want              Answer
	}{
		{"nothing", "", Answer{}},
		{"error", "", failed(CodeTryAgain, "later", "why")},
		{"long", "", failed(CodeConfig, beginning+"… (12582912 bytes in all)", beginning+"… (12582913 bytes in all)")},
		{"just", "", failed(CodeConfig, beginning, "x"+beginning)},
		{"panic", `ADD of container "panic": panic: at the disco`, failed(CodeInternal, "the agent panicked; its log says where", "at the disco")},
		{"big", "answer: 4194318 bytes", failed(CodeInternal, "the agent's answer cannot be sent", "answer: 4194318 bytes, want at most 4194304")},
		{"both", "an output and an error", failed(CodeInternal, "the agent's answer cannot be sent", "answer: an output and an error, want one of them")},
		{"after all these", "", Answer{}},
	} {
		got, err := Call(t.Context(), s.socket, Request{Command: Add, ContainerID: c.container})
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%s: %v: (-want +got)\n%s", c.container, err, d)
		}
		if !strings.Contains(s.reported(), c.report) {
			t.Errorf("%s: reported %q, want %q", c.container, s.reported(), c.report)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "cni.sock")
	_, err := Call(t.Context(), socket, exampleRequest)
	if !errors.Is(err, ErrAway) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), socket) {
		t.Errorf("got %v", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err = Call(t.Context(), socket, exampleRequest); !errors.Is(err, ErrAway) || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dead socket: got %v", err)
	}
}

// TestAgentDies ends the connection while its client waits.
func TestAgentDies(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "cni.sock")
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, said := range []string{"", "RHC\x01\x00\x00\x00\x09{}", "RHC\x09\x00\x00\x00\x00"} {
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = readMessage(conn)
			_, _ = conn.Write([]byte(said))
			conn.Close()
		}()
		_, err = Call(t.Context(), socket, exampleRequest)
		if err == nil || errors.Is(err, ErrAway) || !strings.Contains(err.Error(), socket) {
			t.Errorf("after %q: got %v", said, err)
		}
		if strings.HasPrefix(said, "RHC\x09") != errors.Is(err, ErrProtocol) {
			t.Errorf("after %q: got %v", said, err)
		}
	}
}

// TestClientGoes cancels the handler's context when its client is gone, and not before.
func TestClientGoes(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan context.Context), make(chan struct{})
	s := serve(t, func(ctx context.Context, _ Request) Answer {
		begun <- ctx
		<-ctx.Done()
		close(ended)
		return Answer{}
	}, Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := Call(ctx, s.socket, exampleRequest); done <- err }()
	handlers := <-begun
	if handlers.Err() != nil {
		t.Error("ended before its client went")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, ErrAway) {
		t.Errorf("got %v", err)
	}
	<-ended
}

// TestDeadlines lets handlers, and calls that wait for others, end before their
// client does, which so gets the reason. The clock is that of a bubble.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		left, want time.Duration
		full       bool
		details    string
	}{
		{"short", 10 * time.Second, 9500 * time.Millisecond, false, "no time is left of 10s"},
		{"long", 100 * time.Second, 99 * time.Second, false, "no time is left of 1m40s"},
		{"for ever", 0, 3599 * time.Second, false, "no time is left of 1h0m0s"},
		{"busy", 10 * time.Second, 9500 * time.Millisecond, true, "1 calls at once, and none ended in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{
					limits: Limits{Calls: 1, Call: time.Hour}, slots: make(chan struct{}, 1), aborted: make(chan struct{}),
					handler: func(ctx context.Context, _ Request) Answer {
						<-ctx.Done()
						return failed(CodeTryAgain, "late", context.Cause(ctx).Error())
					},
				}
				if c.full {
					s.slots <- struct{}{}
				}
				conn, other := net.Pipe()
				defer conn.Close()
				defer other.Close()
				begin := time.Now()
				answer, err := s.call(t.Context(), conn, exampleRequest, c.left)
				if err != nil || answer.Error == nil || answer.Error.Code != CodeTryAgain || answer.Error.Details != c.details {
					t.Errorf("got %+v, %v", answer.Error, err)
				}
				if got := time.Since(begin); got != c.want {
					t.Errorf("after %v, want %v", got, c.want)
				}
			})
		})
	}
}

// TestBrokenRequests are answered, reported, and harm no later call.
func TestBrokenRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, echo, Limits{})
	for _, c := range []struct{ said, want string }{
		{"GET / HTTP/1.1\r\n\r\n", "not a peer of this protocol"},
		{"RHC\x01\x00\x00\x00\x02{}", "command: missing"},
		{"RHC\x07\x00\x00\x00\x00", "another version of the protocol: 7"},
		{"RHC\x01\x10\x00\x00\x00", "want at most"},
	} {
		conn, err := net.Dial("unix", s.socket)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(c.said)); err != nil {
			t.Error(err)
		}
		body, err := readMessage(conn)
		if err != nil {
			t.Errorf("%q: %v", c.said, err)
		}
		got, err := decodeAnswer(body)
		if err != nil || got.Error == nil || got.Error.Code != CodeDecode || !strings.Contains(got.Error.Details, c.want) {
			t.Errorf("%q: got %+v, %v", c.said, got.Error, err)
		}
		conn.Close()
		if !strings.Contains(s.reported(), c.want) {
			t.Errorf("reported %q, want %q", s.reported(), c.want)
		}
	}
	if _, err := Call(t.Context(), s.socket, exampleRequest); err != nil {
		t.Error(err)
	}
}

// TestSilentClient is cut off, so that it holds nothing. It is told so in as much time
// as it had, which is not waited for here: a busy machine may need longer.
func TestSilentClient(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "cni.sock")
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := &server{limits: Limits{Read: time.Millisecond}.withDefaults()}
	answer, err := s.converse(t.Context(), conn)
	if !errors.Is(err, os.ErrDeadlineExceeded) || answer == nil || answer.Error == nil || !strings.Contains(answer.Error.Details, "timeout") {
		t.Errorf("got %+v, %v", answer, err)
	}
}

// TestCallsAtOnce holds as many calls as the limit says; the next one waits, and
// STATUS does not.
func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int32
	begun, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(_ context.Context, r Request) Answer {
		if r.Command == Status {
			return Answer{}
		}
		now := running.Add(1)
		defer running.Add(-1)
		if now > most.Load() {
			most.Store(now)
		}
		begun <- struct{}{}
		<-release
		return Answer{}
	}, Limits{Calls: 2})
	var calls sync.WaitGroup
	for range 6 {
		calls.Go(func() {
			if a, err := Call(t.Context(), s.socket, exampleRequest); err != nil || a.Error != nil {
				t.Error(err, a.Error)
			}
		})
	}
	<-begun
	<-begun
	if a, err := Call(t.Context(), s.socket, Request{Command: Status}); err != nil || a.Error != nil {
		t.Error("STATUS:", err, a.Error)
	}
	go func() {
		for range 4 {
			<-begun
		}
	}()
	close(release)
	calls.Wait()
	if most.Load() != 2 {
		t.Errorf("%d calls at once, want 2", most.Load())
	}
}

// TestDrain lets a call that has begun end after the server's end, and takes no other.
func TestDrain(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(ctx context.Context, _ Request) Answer {
		close(begun)
		<-release
		if ctx.Err() != nil {
			return failed(CodeInternal, "cut off", "")
		}
		return Answer{Output: json.RawMessage(`"done"`)}
	}, Limits{Calls: 1, Drain: time.Hour})
	type result struct {
		answer Answer
		err    error
	}
	first, second := make(chan result, 1), make(chan result, 1)
	call := func(to chan result) { a, err := Call(t.Context(), s.socket, exampleRequest); to <- result{a, err} }
	go call(first)
	<-begun
	silent, err := net.Dial("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go call(second)
	s.stop()
	if r := <-second; !errors.Is(r.err, ErrAway) && (r.answer.Error == nil || r.answer.Error.Msg != "the agent is stopping") {
		// what waited for accept was cut off by the kernel
		if r.err == nil || !errors.Is(r.err, syscall.ECONNRESET) {
			t.Errorf("the second: got %+v", r)
		}
	}
	close(release)
	if r := <-first; r.err != nil || string(r.answer.Output) != `"done"` {
		t.Errorf("the first: got %+v", r)
	}
	if err := s.wait(); err != nil {
		t.Error(err)
	}
}

// TestDrainEnds ends contexts after the limit, and waits no longer for a handler
// that does not mind. The clock is that of a bubble.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, minds := range []bool{true, false} {
			stubborn := make(chan struct{})
			s := &server{limits: Limits{Drain: time.Minute}.withDefaults(), aborted: make(chan struct{})}
			s.open.Go(func() {
				<-s.aborted
				if !minds {
					<-stubborn
				}
			})
			begin := time.Now()
			err := s.drain()
			if (err == nil) != minds {
				t.Errorf("minds %v: got %v", minds, err)
			}
			want := time.Minute
			if !minds {
				want += lastWait
			}
			if got := time.Since(begin); got != want {
				t.Errorf("minds %v: waited %v, want %v", minds, got, want)
			}
			close(stubborn)
			synctest.Wait()
		}
	})
}

// breaking is a listener that fails some times.
type breaking struct {
	net.Listener

	errs []error
}

func (b *breaking) Accept() (net.Conn, error) {
	if len(b.errs) == 0 {
		return b.Listener.Accept()
	}
	err := b.errs[0]
	b.errs = b.errs[1:]
	return nil, err
}

// TestAcceptFails goes on after what passes and ends with what does not.
func TestAcceptFails(t *testing.T) {
	t.Parallel()
	l, err := Listen(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	var reports []string
	err = Serve(t.Context(), &breaking{l, []error{syscall.EMFILE, syscall.ECONNABORTED, syscall.EBADF}}, echo, Limits{Report: func(err error) { reports = append(reports, err.Error()) }})
	if !errors.Is(err, syscall.EBADF) {
		t.Errorf("got %v", err)
	}
	if want := []string{"accept: too many open files", "accept: software caused connection abort"}; !cmp.Equal(want, reports) {
		t.Errorf("reported %q", reports)
	}
}

func TestAllowedUser(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		peer uint32
		own  int
		want bool
	}{{0, 0, true}, {0, 1000, true}, {1000, 1000, true}, {1000, 0, false}, {1001, 1000, false}} {
		if err := allowedUser(&syscall.Ucred{Pid: 7, Uid: c.peer}, c.own); (err == nil) != c.want {
			t.Errorf("user %d of %d: %v", c.peer, c.own, err)
		}
	}
	pipe, other := net.Pipe()
	defer other.Close()
	defer pipe.Close()
	if err := allowed(pipe); err == nil {
		t.Error("a pipe is allowed")
	}
}
