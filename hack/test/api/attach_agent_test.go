package api

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"railhead/hack/program"
)

// agentLives are the lives of one node's agent, one after the other.
type agentLives struct {
	mu   sync.Mutex
	life *agentLife
	next chan struct{} // closed when the next life begins
	logs []*buffer
}

// agentLife is one life of an agent.
type agentLife struct {
	pid   int
	log   *buffer
	ended chan struct{}
	err   error
	stop  context.CancelFunc
}

func (n *attachNode) socket() string { return filepath.Join(n.run, "cni.sock") }

// begin begins a life of the agent. The one before has ended.
func (n *attachNode) begin(t *testing.T) {
	t.Helper()
	life := &agentLife{log: &buffer{}, ended: make(chan struct{})}
	var ctx context.Context
	ctx, life.stop = context.WithCancel(context.Background())
	cmd := program.Command(
		ctx, filepath.Join(n.programs, "railhead"), "agent", "--node-name", n.name, "--kubeconfig", n.kubeconfig, "--namespace", Namespace,
		"--listen", "127.0.0.1:0", "--pod-resources", "", "--state-dir", n.run, "--log.level", "debug",
		"--addresses", "on", "--addresses-dir", filepath.Join(n.dir, "addresses"),
		"--cni", "on", "--cni-socket", n.socket(), "--cni-bin-dir", n.bin, "--cni-conf-dir", n.conf,
		"--cni-program", filepath.Join(n.programs, "railhead-cni"), "--attachments-dir", n.attachments(),
	)
	cmd.Stdout, cmd.Stderr = life.log, life.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	life.pid = cmd.Process.Pid
	go func() {
		defer close(life.ended)
		life.err = cmd.Wait()
	}()
	n.lives.mu.Lock()
	defer n.lives.mu.Unlock()
	n.lives.life = life
	n.lives.logs = append(n.lives.logs, life.log)
	close(n.lives.next)
	n.lives.next = make(chan struct{})
}

// start begins a life of the agent that ends with the test, and tells of it if the test fails.
func (n *attachNode) start(t *testing.T) {
	t.Helper()
	n.begin(t)
	t.Cleanup(func() {
		life, _ := n.current()
		if t.Failed() {
			t.Logf("log of the last agent:\n%s", lastLines(life.log.String(), 60))
		}
		life.end()
	})
}

// current is the life that began last, and a channel that is closed when the next one does.
func (n *attachNode) current() (*agentLife, <-chan struct{}) {
	n.lives.mu.Lock()
	defer n.lives.mu.Unlock()
	return n.lives.life, n.lives.next
}

// serves says whether somebody accepts calls at the agent's socket.
func (n *attachNode) serves() bool {
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "unix", n.socket())
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// kill ends the life as it stands, and waits for its end.
func (l *agentLife) kill(t *testing.T) {
	t.Helper()
	select {
	case <-l.ended:
		t.Errorf("the agent ended by itself: %v\n%s", l.err, lastLines(l.log.String(), 30))
		return
	default:
	}
	if err := syscall.Kill(l.pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	<-l.ended
}

// end ends the life, if it has not ended.
func (l *agentLife) end() {
	l.stop()
	<-l.ended
}

// awaitServed waits until the agent takes calls.
func (n *attachNode) awaitServed(t *testing.T) {
	t.Helper()
	Eventually(t, func() string {
		life, _ := n.current()
		select {
		case <-life.ended:
			t.Fatalf("the agent has ended: %v\n%s", life.err, lastLines(life.log.String(), 30))
		default:
		}
		if !n.serves() {
			return "somebody at " + n.socket()
		}
		return ""
	})
}

// sleep waits for a time that is no more than a moment to do something at.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
