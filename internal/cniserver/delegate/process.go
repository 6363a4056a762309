package delegate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec" //nolint:depguard // CNI plugins of others are programs: this is the one place that runs any
	"syscall"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

const (
	maxOutput = 1 << 20 // bytes of a result
	maxStderr = 4 << 10 // bytes of what a plugin says beside it, the last ones
	maxQuoted = 512     // bytes of what is no JSON

	// afterwards is how long a plugin that has ended may keep its output open by
	// programs that it started.
	afterwards = 2 * time.Second

	// A plugin that is being written is tried again for as long as the writer
	// may need.
	busyEach = 20 * time.Millisecond
	busyMost = 5 * time.Second
)

// process is one call's. It implements [invoke.Exec].
type process struct {
	version.PluginDecoder
	root  string
	pause func(context.Context) error // before it is tried again

	ran  bool   // and succeeded
	said []byte // its answer then
}

func (d *Delegate) process() *process {
	return &process{root: d.root, pause: pause}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(busyEach):
		return nil
	}
}

// FindInPath implements [invoke.Exec]; paths are found before.
func (*process) FindInPath(string, []string) (string, error) { return "", errors.ErrUnsupported }

// ExecPlugin implements [invoke.Exec].
func (p *process) ExecPlugin(ctx context.Context, path string, stdin []byte, env []string) ([]byte, error) {
	for range busyMost / busyEach {
		said, err := p.once(ctx, path, stdin, env)
		if !errors.Is(err, syscall.ETXTBSY) {
			p.said, p.ran = said, err == nil
			return said, err
		}
		if stopped := p.pause(ctx); stopped != nil {
			return nil, fmt.Errorf("%w, waiting for it to be written: %w", stopped, err)
		}
	}
	return p.once(ctx, path, stdin, env)
}

// unread is the error of an answer that is no result; others stay as they are.
func (p *process) unread(err error) error {
	if !p.ran {
		return err
	}
	return fmt.Errorf("its answer %q is no CNI result: %w", p.said[:min(len(p.said), maxQuoted)], err)
}

// once runs a plugin in a process group of its own, which ends with ctx.
func (p *process) once(ctx context.Context, path string, stdin []byte, env []string) ([]byte, error) {
	output, said := &limited{most: maxOutput}, &tail{most: maxStderr}
	cmd := exec.CommandContext(ctx, path)
	cmd.Dir, cmd.Env = "/", env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), output, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: p.root, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = afterwards
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		err = nil // what it started and left behind does not answer for it
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, withStderr(fmt.Errorf("was ended before it answered: %w", context.Cause(ctx)), said)
	case output.over:
		return nil, withStderr(fmt.Errorf("answers with more than %d bytes", maxOutput), said)
	case err != nil:
		return nil, failure(err, output.kept, said)
	}
	return output.kept, refusal(output.kept)
}

// refusal is the error in the answer of a plugin that ended with success. Results
// have no code.
func refusal(output []byte) error {
	e := &types.Error{}
	if json.Unmarshal(output, e) == nil && e.Code != 0 {
		return fmt.Errorf("code %d: %w", e.Code, e)
	}
	return nil // or no JSON, which is for others to judge
}

// failure is the error of a plugin that failed: what it says, or how it ended.
func failure(err error, output []byte, said *tail) error {
	e := &types.Error{}
	exited := &exec.ExitError{}
	switch {
	case !errors.As(err, &exited): // it did not run
		return err
	case len(bytes.TrimSpace(output)) == 0:
		return withStderr(fmt.Errorf("says nothing and ends with %w", err), said)
	case json.Unmarshal(output, e) == nil && (e.Code != 0 || e.Msg != ""):
		return withStderr(fmt.Errorf("code %d: %w", e.Code, e), said)
	}
	return withStderr(fmt.Errorf("ends with %w, and says %q, which is no CNI error", err, output[:min(len(output), maxQuoted)]), said)
}

// withStderr adds what a plugin said beside its answer.
func withStderr(err error, said *tail) error {
	text := bytes.TrimSpace(said.last)
	if len(text) == 0 {
		return err
	}
	return fmt.Errorf("%w (stderr: %q)", err, text)
}

// limited keeps output up to a limit, and refuses what is more.
type limited struct {
	kept []byte
	most int
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	if len(l.kept)+len(p) > l.most {
		l.over = true
		return 0, errors.New("too much")
	}
	l.kept = append(l.kept, p...)
	return len(p), nil
}

// tail keeps the end of output.
type tail struct {
	last []byte
	most int
}

func (t *tail) Write(p []byte) (int, error) {
	t.last = append(t.last, p[max(0, len(p)-t.most):]...)
	t.last = t.last[max(0, len(t.last)-t.most):]
	return len(p), nil
}
