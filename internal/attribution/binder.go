package attribution

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"

	"railhead/internal/kernel/rdmanl"
)

// CounterPolicy says whether the kernel is made to count the queue pairs of
// each pod apart. Drivers that can are those of mlx5 and ionic.
type CounterPolicy string

// The policies. What an administrator has set is left alone by each of them.
const (
	CountersOff  CounterPolicy = "off"  // change nothing, read what there is
	CountersAuto CounterPolicy = "auto" // the kernel binds the new queue pairs of a process to counters of its own (Linux 5.9)
	CountersBind CounterPolicy = "bind" // queue pairs are bound to one set of counters a pod, also those that exist (Linux 5.9)
)

// Binder makes the kernel count queue pairs of each pod apart, and reads what
// it counted. It is safe for concurrent use.
//
// While queue pairs are bound, the kernel asks the hardware for each set of
// counters whenever anybody reads the counters of the port.
type Binder struct {
	policy CounterPolicy
	a      *Attributor
	log    *slog.Logger

	mu    sync.Mutex // guards ports
	ports map[counterPort]*boundPort
}

// boundPort is what was done to a port.
type boundPort struct {
	index uint32 // of the registration of the device that this is about

	mu     sync.Mutex // held while the port is worked on, which others do not wait for
	isOurs bool       // its mode is as we set it
	state  string     // what was last said of it
	sets   map[podKey]uint32
	pods   map[uint32]*Pod   // by set
	bound  map[uint32]uint32 // set by number of queue pair
}

// NewBinder returns a Binder. The error names the policies there are.
func NewBinder(policy CounterPolicy, a *Attributor, log *slog.Logger) (*Binder, error) {
	switch policy {
	case CountersOff, CountersAuto, CountersBind:
		return &Binder{policy: policy, a: a, log: log, ports: map[counterPort]*boundPort{}}, nil
	}
	return nil, fmt.Errorf("policy for counters of queue pairs %q, want %q, %q or %q", policy, CountersOff, CountersAuto, CountersBind)
}

// Reconcile brings a port to what the policy says; index is that of the RDMA
// device. It is called again and again: what fails because queue pairs are bound
// at the moment, or began since the last time, is done then. It needs
// CAP_NET_ADMIN. With CountersBind it costs what [rdmanl.Client.QPs] costs.
func (b *Binder) Reconcile(c *rdmanl.Client, device string, index uint32, port int) error {
	if b.policy == CountersOff {
		return nil
	}
	p := b.port(device, index, port)
	p.mu.Lock()
	defer p.mu.Unlock()
	mode, err := c.CounterMode(index, port)
	switch {
	case errors.Is(err, rdmanl.ErrNotSupported):
		b.say(p, device, port, "the driver does not count queue pairs apart")
		return nil
	case err != nil:
		return err
	case b.policy == CountersBind:
		return b.bind(c, p, mode, counterPort{device, port})
	}
	return b.setAuto(c, p, mode, counterPort{device, port})
}

// port returns what was done to a port. The driver begins anew with a device.
func (b *Binder) port(device string, index uint32, port int) *boundPort {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := counterPort{device, port}
	if p := b.ports[at]; p != nil && p.index == index {
		return p
	}
	b.ports[at] = &boundPort{index: index}
	return b.ports[at]
}

// take forgets what was done to a port, and returns it.
func (b *Binder) take(at counterPort) *boundPort {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.ports[at]
	delete(b.ports, at)
	return p
}

// byPID is the mode that CountersAuto sets.
func byPID() rdmanl.CounterMode { return rdmanl.CounterMode{Mode: "auto", ByPID: true} }

func isByPID(m rdmanl.CounterMode) bool { return m.Mode == "auto" && m.ByPID && !m.ByType }

func (b *Binder) setAuto(c *rdmanl.Client, p *boundPort, mode rdmanl.CounterMode, at counterPort) error {
	switch {
	case isByPID(mode):
		b.say(p, at.device, at.port, "")
		return nil
	case mode.Mode != "none":
		p.isOurs = false
		b.say(p, at.device, at.port, "an administrator has bound queue pairs otherwise, which is left alone")
		return nil
	}
	err := c.SetCounterMode(p.index, at.port, byPID())
	if errors.Is(err, syscall.EBUSY) {
		b.say(p, at.device, at.port, "queue pairs are still bound to counters, which is tried again")
		return nil
	}
	p.isOurs = err == nil
	return err
}

// say logs what keeps a port from being as the policy says, each once in a row.
func (b *Binder) say(p *boundPort, device string, port int, state string) {
	if state != "" && state != p.state {
		b.log.Warn("queue pairs are not counted by pod", "device", device, "port", port, "policy", b.policy, "reason", state)
	}
	p.state = state
}

// Release puts a port back to what it was, if Reconcile changed it and nobody
// did since. It is called before the program ends.
func (b *Binder) Release(c *rdmanl.Client, device string, index uint32, port int) error {
	p := b.take(counterPort{device, port})
	if p == nil || p.index != index {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := []error{p.unbind(c, port)}
	if p.isOurs && b.policy == CountersAuto {
		mode, err := c.CounterMode(index, port)
		if err == nil && isByPID(mode) {
			err = c.SetCounterMode(index, port, rdmanl.CounterMode{Mode: "none"})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Read returns the sets of counters of a port that queue pairs of pods are
// bound to, by the kernel's names, for [Account.ObserveCounters]. Sets read
// before an error come with it, but are not all there are. The driver asks the
// hardware for each. There are none, and no error, where the driver cannot.
func (b *Binder) Read(c *rdmanl.Client, device string, index uint32, port int) ([]CounterSet[string], error) {
	counters, err := c.QPCounters(index, port)
	if errors.Is(err, rdmanl.ErrNotSupported) {
		return nil, nil
	}
	p := b.port(device, index, port)
	p.mu.Lock()
	defer p.mu.Unlock()
	var sets []CounterSet[string]
	for i := range counters {
		counter := &counters[i]
		pod, isPods := b.podOf(p, counter)
		if !isPods {
			continue
		}
		set := CounterSet[string]{ID: counter.ID, Pod: pod}
		for _, v := range counter.Counters {
			set.Values = append(set.Values, Value[string]{Family: v.Name, Value: v.Value})
		}
		sets = append(sets, set)
	}
	return sets, err
}

// podOf returns whose a set of counters is. It may be a pod's that cannot be
// told, because its process has ended; then pod is nil.
func (b *Binder) podOf(p *boundPort, counter *rdmanl.QPCounter) (pod *Pod, isPods bool) {
	if counter.KernelName != "" {
		return nil, false
	}
	if pod = p.pods[counter.ID]; pod != nil {
		return b.a.newest(pod), true
	}
	if counter.PID == 0 {
		return nil, true
	}
	process, err := b.a.processes.of(counter.PID)
	switch {
	case err != nil:
		return nil, true
	case process.pod == "":
		return nil, false
	}
	return b.a.newest(unknownPod(process.pod)), true
}
