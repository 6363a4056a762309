package delegate

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fifoOf is a FIFO that ends when the last plugin that has it has ended.
func fifoOf(t *testing.T, n *node) *os.File {
	t.Helper()
	if err := syscall.Mkfifo(n.fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(n.fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// awaitByte waits until one of the plugins has written. Before the first of them
// has opened the FIFO, it ends at once.
func awaitByte(t *testing.T, f *os.File) {
	t.Helper()
	for {
		if n, err := f.Read(make([]byte, 1)); n == 1 {
			return
		} else if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
}

// TestEndsWithContext wants a plugin that hangs, and what it started, to end.
func TestEndsWithContext(t *testing.T) {
	t.Parallel()
	n := newNode(t, "vendor")
	fifo := fifoOf(t, n)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the runtime went away")
	ended := make(chan error)
	go func() { ended <- n.Del(ctx, n.call(t, script{Child: n.fifo, Stderr: "never said"}, nil)) }()
	awaitByte(t, fifo)
	awaitByte(t, fifo) // both run
	cancel(reason)
	err := <-ended
	if !errors.Is(err, reason) || !strings.Contains(err.Error(), "network rails: plugin vendor (") {
		t.Errorf("got %v", err)
	}
	if rest, err := io.ReadAll(fifo); err != nil || len(rest) > 0 { // it ends with the last of them
		t.Errorf("read %q, error %v", rest, err)
	}
}

// TestLeavesAChild has a plugin end well, and one that it started keep its output.
func TestLeavesAChild(t *testing.T) {
	t.Parallel()
	n := newNode(t, "vendor")
	fifo := fifoOf(t, n)
	c := n.call(t, script{Child: n.fifo, Leave: true, Answer: answered}, nil)
	output, err := n.process().ExecPlugin(t.Context(), filepath.Join(n.bin, "vendor"), c.Config, n.environment("ADD", c))
	if err != nil || string(output) != answered {
		t.Errorf("got %s, %v", output, err)
	}
	awaitByte(t, fifo)
}

// busy is a plugin that is being written until it is closed.
func busy(t *testing.T, n *node) (path string, writer *os.File) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(n.bin, "new")
	if err := os.WriteFile(path, content, 0o700); err != nil {
		t.Fatal(err)
	}
	if writer, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	return path, writer
}

// TestBusy has a plugin be written when it is called.
func TestBusy(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	path, writer := busy(t, n)
	p, pauses := n.process(), 0
	p.pause = func(ctx context.Context) error {
		if pauses++; pauses == 2 {
			return errors.Join(writer.Close(), pause(ctx))
		}
		return pause(ctx)
	}
	c := n.call(t, script{Answer: answered}, nil)
	output, err := p.ExecPlugin(t.Context(), path, c.Config, n.environment("ADD", c))
	if err != nil || string(output) != answered || pauses < 2 {
		t.Errorf("got %s, %v after %d pauses", output, err, pauses)
	}
}

// TestBusyForLong has its call end first.
func TestBusyForLong(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	_, writer := busy(t, n)
	defer func() { _ = writer.Close() }()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no longer wanted"))
	c := n.call(t, script{}, map[string]any{"type": "new"})
	if err := n.Del(ctx, c); err == nil || !strings.Contains(err.Error(), "no longer wanted") {
		t.Errorf("got %v", err)
	}
	p := n.process()
	p.pause = func(context.Context) error { return errors.New("no longer wanted") }
	_, err := p.ExecPlugin(t.Context(), filepath.Join(n.bin, "new"), c.Config, nil)
	if !errors.Is(err, syscall.ETXTBSY) || !strings.Contains(err.Error(), "no longer wanted, waiting for it to be written") {
		t.Errorf("got %v", err)
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	for _, writes := range [][]string{{"abcdef"}, {"abc", "def"}, {"a", "b", "c", "d", "ef"}, {"xxxxxxxx", "cdef"}} {
		kept := &tail{most: 4}
		for _, w := range writes {
			if n, err := kept.Write([]byte(w)); n != len(w) || err != nil {
				t.Error(n, err)
			}
		}
		if string(kept.last) != "cdef" {
			t.Errorf("%q: kept %q, want cdef", writes, kept.last)
		}
	}
}
