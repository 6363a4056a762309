package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"railhead/hack/program"
)

// nodeProcess is a node's agent as a process.
type nodeProcess struct {
	node  string
	log   *buffer
	in    io.WriteCloser
	ready chan struct{} // closed once it gives pods addresses
	ended chan struct{}
	err   error
	stop  context.CancelFunc

	mu      sync.Mutex
	last    int // ID of an order
	waiting map[int]chan answer
}

// startNode starts a life of a node's agent.
func startNode(tb testing.TB, life nodeLife) *nodeProcess {
	tb.Helper()
	text, err := json.Marshal(life)
	if err != nil {
		tb.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	p := &nodeProcess{
		node: life.Node, log: &buffer{}, ready: make(chan struct{}), ended: make(chan struct{}), waiting: map[int]chan answer{},
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	cmd := program.Command(ctx, self)
	cmd.Env = append(os.Environ(), nodeLifeEnv+"="+string(text))
	cmd.Stderr = p.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if p.in, err = cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.listen(out)
		p.err = cmd.Wait()
	}()
	return p
}

// listen hands on answers until there are none any more. What nobody asked for is
// left out.
func (p *nodeProcess) listen(out io.Reader) {
	answers := json.NewDecoder(out)
	ready := sync.OnceFunc(func() { close(p.ready) })
	for {
		var a answer
		if answers.Decode(&a) != nil { // it ended, perhaps within a line
			return
		}
		if a.Ready {
			ready()
			continue
		}
		p.mu.Lock()
		waiting, isAwaited := p.waiting[a.ID]
		delete(p.waiting, a.ID)
		p.mu.Unlock()
		if isAwaited {
			waiting <- a
		}
	}
}

// errDied is that a process died before it answered: what it was told may be done or not.
var errDied = errors.New("the agent died before it answered")

// ask tells the process something and returns its answer, or why ctx has ended.
func (p *nodeProcess) ask(ctx context.Context, o order) (answer, error) {
	select {
	case <-p.ready:
	case <-p.ended:
		return answer{}, errDied
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	told := make(chan answer, 1)
	p.mu.Lock()
	p.last++
	o.ID = p.last
	p.waiting[o.ID] = told
	text, err := json.Marshal(o)
	if err == nil {
		_, err = p.in.Write(append(text, '\n'))
	}
	p.mu.Unlock()
	if err != nil {
		return answer{}, errDied
	}
	select {
	case a := <-told:
		return a, nil
	case <-p.ended:
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	select {
	case a := <-told: // its last word
		return a, nil
	default:
		return answer{}, errDied
	}
}

// wasKilled says whether the process, which has ended, was killed by a signal.
func (p *nodeProcess) wasKilled() bool {
	<-p.ended
	var failed *exec.ExitError
	if !errors.As(p.err, &failed) {
		return false
	}
	status, ok := failed.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// end ends the process, if it has not ended.
func (p *nodeProcess) end() {
	_ = p.in.Close()
	p.stop()
	<-p.ended
}
