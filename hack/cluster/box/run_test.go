package box

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRunStatus wants each way to end to be told from the others.
func TestRunStatus(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	for _, test := range []struct {
		script string
		code   int
		text   string
	}{
		{"exit 7", 7, "sh: exit status 7"},
		{"kill -TERM $$", 143, "sh: signal: terminated"},
	} {
		err := b.Run(t.Context(), Command{Args: []string{"sh", "-c", test.script}})
		var exit *ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != test.code || exit.Error() != test.text {
			t.Errorf("%s: %v, want %q", test.script, err, test.text)
		}
	}
	if err := b.Run(t.Context(), Command{Args: []string{"true"}}); err != nil {
		t.Error(err)
	}
	for _, program := range []string{"no-such-program", "/no/such/program"} {
		if err := b.Run(t.Context(), Command{Args: []string{program}}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want that it does not exist", program, err)
		}
	}
	if err := b.Run(t.Context(), Command{Args: []string{"/etc/hosts"}}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file that is no program: %v, want no permission", err)
	}
	if err := b.Run(t.Context(), Command{Args: []string{"true"}, Dir: "/nowhere"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory that is not there: %v", err)
	}
	if err := b.Run(t.Context(), Command{}); err == nil {
		t.Error("no program: no error")
	}
	long := strings.Repeat("x", messageLimit)
	if err := b.Run(t.Context(), Command{Args: []string{"true", long}}); err == nil {
		t.Error("order that is too long: no error")
	}
	sh(t, b, "true") // the machine has survived all that
}

// TestRunStdio wants every byte through pipes and files.
func TestRunStdio(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	var out, errOut bytes.Buffer
	err := b.Run(t.Context(), Command{
		Args: []string{"sh", "-c", "cat; echo $COLOUR $PWD >&2"}, Env: []string{"COLOUR=red"}, Dir: "/etc",
		Stdin: bytes.NewReader(big), Stdout: &out, Stderr: &errOut,
	})
	if err != nil || !bytes.Equal(out.Bytes(), big) || errOut.String() != "red /etc\n" {
		t.Errorf("%v: %d bytes, want %d; stderr %q", err, out.Len(), len(big), errOut.String())
	}

	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// A program that reads nothing does not wait for its input.
	r, w := io.Pipe()
	defer w.Close()
	if err := b.Run(t.Context(), Command{Args: []string{"sh", "-c", "echo one; echo two >&2"}, Stdin: r, Stdout: file, Stderr: file}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file.Name()); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("file has %q (%v)", text, err)
	}

	// What is left behind holds stdout open, and nobody up.
	out.Reset()
	if err := b.Run(t.Context(), Command{Args: []string{"sh", "-c", "echo first; sleep 1000 &"}, Stdout: &out}); err != nil || out.String() != "first\n" {
		t.Errorf("with a process left behind: %q, %v", out.String(), err)
	}
}

// TestLateCopy wants what a program wrote to be had though we come to read it
// only when nobody waits any more, and a process that it left behind holds the
// pipe open.
func TestLateCopy(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var s stdio
	defer s.close()
	if err := s.openOutput(&out); err != nil {
		t.Fatal(err)
	}
	if _, err := s.theirs[0].WriteString("written before the end"); err != nil {
		t.Fatal(err)
	}
	behind, err := unix.Dup(int(s.theirs[0].Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(behind) }()
	if err := s.ours[0].SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.wg.Wait()
	if err := errors.Join(s.errs...); err != nil || out.String() != "written before the end" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestRunCancel wants a program and those it started to end with the context.
func TestRunCancel(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	go func() {
		line := make([]byte, 3)
		_, _ = io.ReadFull(r, line)
		cancel()
	}()
	err := b.Run(ctx, Command{Args: []string{"sh", "-c", "sleep 1001 & echo up; sleep 1002"}, Stdout: w})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
	eventually(t, "what it started has ended", func() bool { return sh(t, b, "pgrep -f 'sleep 10[0]' || true") == "" })
	if err := b.Run(ctx, Command{Args: []string{"true"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("context that has ended before: %v", err)
	}
}

// TestReaping wants orphans to be waited for, and their siblings' statuses to
// reach who wants them.
func TestReaping(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	for range 8 {
		out, err := output(t, b, "for i in 1 2 3 4 5; do (sleep 0.01 &) ; done; exit 5")
		var exit *ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 5 {
			t.Fatalf("%q, %v", out, err)
		}
	}
	eventually(t, "all orphans are waited for", func() bool {
		return sh(t, b, "ps -e -o stat= | grep -c Z || true") == "0"
	})
}

// TestInitSurvives wants the first process to live through what its programs
// send it.
func TestInitSurvives(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	sh(t, b, "for s in HUP INT QUIT TERM ABRT USR1 PIPE ALRM KILL STOP; do kill -$s 1; done")
	sh(t, b, "true")
	// Programs begin with no signal ignored or blocked, whatever this test was started with.
	const none = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000"
	if out := sh(t, b, "grep -E 'SigIgn|SigBlk' /proc/self/status"); out != none {
		t.Errorf("signals ignored or blocked:\n%s\nwant\n%s", out, none)
	}
}

// TestDeadMachine wants every question to a machine that died to be answered.
func TestDeadMachine(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	running := make(chan error)
	go func() { running <- b.Run(t.Context(), Command{Args: []string{"sleep", "1000"}}) }()
	eventually(t, "sleep runs", func() bool { return sh(t, b, "pgrep sleep || true") != "" })
	if err := unix.Kill(b.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-b.Done()
	if err := <-running; !errors.Is(err, errEnded) {
		t.Errorf("Run that was under way: %v", err)
	}
	if err := b.Run(t.Context(), Command{Args: []string{"true"}}); !errors.Is(err, errEnded) {
		t.Errorf("Run afterwards: %v", err)
	}
	if _, err := b.Services(); !errors.Is(err, errEnded) {
		t.Errorf("Services afterwards: %v", err)
	}
}
