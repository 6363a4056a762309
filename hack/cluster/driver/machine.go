package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/plan"
	"railhead/internal/kernel/netns"
)

// machine is the fabric or a node, on or off.
type machine struct {
	spec     box.Spec
	services []box.Service // in the order of their start
	boot     bootFunc

	life sync.Mutex              // held while it is turned on or off
	box  atomic.Pointer[box.Box] // nil when it is off

	mu     sync.Mutex
	abort  context.CancelCauseFunc // of the start that is under way
	closed bool
}

// Why a start came to nothing.
var (
	errCrashed = errors.New("its power was taken away while it booted")
	errClosed  = errors.New("the cluster is ending")
)

// start turns it on, connects it and starts its services. If that fails it is
// off again.
func (m *machine) start(ctx context.Context) error {
	m.life.Lock()
	defer m.life.Unlock()
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	if err := m.begin(abort); err != nil {
		return err
	}
	defer m.begun()
	b, err := box.Start(ctx, m.spec)
	if err != nil {
		return because(ctx, err)
	}
	m.box.Store(b)
	if err := m.boot(ctx, m, b); err != nil {
		return errors.Join(fmt.Errorf("boot %s: %w", m.spec.Name, because(ctx, err)), m.end((*box.Box).Halt))
	}
	return nil
}

// begin sees that it is off, and that the start can be aborted from now on.
func (m *machine) begin(abort context.CancelCauseFunc) error {
	if _, err := m.running(); err == nil {
		return fmt.Errorf("%s is on", m.spec.Name)
	}
	if m.box.Load() != nil { // it ended by itself, and left what Halt removes
		if err := m.end((*box.Box).Halt); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("%s: %w", m.spec.Name, errClosed)
	}
	m.abort = abort
	return nil
}

func (m *machine) begun() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.abort = nil
}

// interrupt aborts the start that is under way and reports whether one was.
func (m *machine) interrupt(why error, forever bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = m.closed || forever
	if m.abort == nil {
		return false
	}
	m.abort(why)
	return true
}

// crash takes its power away, also while it boots. Its disk stays.
func (m *machine) crash() error {
	booting := m.interrupt(errCrashed, false)
	m.life.Lock()
	defer m.life.Unlock()
	switch {
	case m.box.Load() != nil:
		return m.end((*box.Box).Halt)
	case booting:
		return nil
	}
	return m.off()
}

// close ends it for good and removes its disk.
func (m *machine) close() error {
	m.interrupt(errClosed, true)
	m.life.Lock()
	defer m.life.Unlock()
	if m.box.Load() == nil {
		return nil
	}
	return m.end((*box.Box).Close)
}

func (m *machine) end(how func(*box.Box) error) error { return how(m.box.Swap(nil)) }

// because adds why a context ended to an error that came of it.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// running is the machine's box. The error says that it is off, or has ended by
// itself.
func (m *machine) running() (*box.Box, error) {
	b := m.box.Load()
	if b == nil {
		return nil, m.off()
	}
	select {
	case <-b.Done():
		return nil, m.off()
	default:
		return b, nil
	}
}

// errOff is wrapped in what is said of machines that are off.
var errOff = errors.New("is off: boot it first")

func (m *machine) off() error { return fmt.Errorf("%s %w", m.spec.Name, errOff) }

// has finds a component of the machine. The error says which there are.
func (m *machine) has(component string) error {
	var names []string
	for _, s := range m.services {
		if s.Name == component {
			return nil
		}
		names = append(names, s.Name)
	}
	return fmt.Errorf("component %q of %s: want one of %s", component, m.spec.Name, strings.Join(names, ", "))
}

// machine finds a machine by its name.
func (c *Cluster) machine(name string) (*machine, error) {
	if m, ok := c.machines[name]; ok {
		return m, nil
	}
	names := []string{plan.Fabric}
	for _, n := range c.plan.Nodes {
		names = append(names, n.Name)
	}
	return nil, fmt.Errorf("machine %q: want one of %s", name, strings.Join(names, ", "))
}

// on finds a machine that is on.
func (c *Cluster) on(name string) (*box.Box, error) {
	m, err := c.machine(name)
	if err != nil {
		return nil, err
	}
	return m.running()
}

// NetNS opens the network namespace of a machine.
func (c *Cluster) NetNS(name string) (*netns.NS, error) {
	b, err := c.on(name)
	if err != nil {
		return nil, err
	}
	return netns.OpenPID(b.PID())
}

// Root is the root directory of a machine as the host sees it; empty when the
// machine is off.
func (c *Cluster) Root(name string) string {
	b, err := c.on(name)
	if err != nil {
		return ""
	}
	return b.Root()
}

// Run runs a command on a machine.
func (c *Cluster) Run(ctx context.Context, name string, command box.Command) error {
	b, err := c.on(name)
	if err != nil {
		return err
	}
	return b.Run(ctx, command)
}
