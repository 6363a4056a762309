package simulation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"railhead/internal/kernel/node"
)

// Simulation is a scenario that runs. It is safe for concurrent use.
type Simulation struct {
	scenario *Scenario
	dir      string
	clock    func() time.Time
	epoch    time.Time
	machine  *machine
	ground   *ground    // nil where the node is invented
	api      *apiServer // nil where it is real
	kubelet  *kubelet   // likewise

	mu       sync.Mutex // held while the simulation goes on
	isClosed bool
}

// socketName is the name of the pod-resources socket.
const socketName = "podresources.sock"

// Start begins a scenario at the present time of a clock. Its files go below a
// directory, which must not exist or be empty; they are thousands, so one in
// memory is much faster than one on a disk. Close it after use.
func Start(s *Scenario, dir string, clock func() time.Time) (*Simulation, error) {
	if s.RealNode {
		return nil, errors.New("realNode: true, want a scenario that invents its node")
	}
	return start(s, dir, clock, (*Simulation).begin)
}

// StartOn begins a scenario whose cards stand on netdevs of a real node, see
// [Scenario], as Start does. Netdevs, processes and network namespaces are those
// of the node, which must be its own in all of them. What is simulated counts
// from here on.
//
// Reading the environment of processes needs CAP_SYS_PTRACE, and of those of
// other users CAP_DAC_READ_SEARCH too; [Simulation.Unseen] says where that was
// not permitted.
func StartOn(n node.Node, s *Scenario, dir string, clock func() time.Time) (*Simulation, error) {
	if !s.RealNode {
		return nil, errors.New("realNode: false, want a scenario of cards on a real node")
	}
	return start(s, dir, clock, func(sim *Simulation) error { return sim.beginOn(n) })
}

func start(s *Scenario, dir string, clock func() time.Time, begin func(*Simulation) error) (*Simulation, error) {
	if err := prepare(dir); err != nil {
		return nil, err
	}
	sim := &Simulation{scenario: s, dir: dir, clock: clock, epoch: clock()}
	if err := begin(sim); err != nil {
		return nil, errors.Join(err, sim.Close())
	}
	return sim, nil
}

func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as /sys
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s: has %q in it, want an empty directory", dir, entries[0].Name())
	}
	return nil
}

func (s *Simulation) begin() (err error) {
	if s.machine, err = newMachine(s.scenario, s.dir); err != nil {
		return err
	}
	if s.kubelet, err = newKubelet(s.PodResourcesSocket()); err != nil {
		return err
	}
	s.api = newAPIServer(s.scenario, s.epoch)
	return s.Advance(s.epoch)
}

func (s *Simulation) beginOn(n node.Node) (err error) {
	if s.ground, err = newGround(n); err != nil {
		return err
	}
	if s.machine, err = newMachineOn(s.ground, s.scenario, s.dir); err != nil {
		return err
	}
	return s.Advance(s.epoch)
}

// Unseen returns an error, fs.ErrPermission, where pods of a real node may not be
// found, because some of its processes may not be looked into.
func (s *Simulation) Unseen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ground == nil || s.ground.denied == 0 {
		return nil
	}
	return fmt.Errorf("environment of %d processes, which needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: %w", s.ground.denied, fs.ErrPermission)
}

// Node is the kernel of the node.
func (s *Simulation) Node() node.Node { return s.machine }

// NodeName is the name of an invented node in Kubernetes.
func (s *Simulation) NodeName() string { return s.scenario.Node }

// RESTConfig leads to the API server of an invented node. Each call returns another one.
func (s *Simulation) RESTConfig() *rest.Config {
	return &rest.Config{Host: "http://kubernetes.simulated", Transport: s.api, QPS: -1}
}

// PodResourcesSocket is the path of the pod-resources socket of the kubelet of an
// invented node.
func (s *Simulation) PodResourcesSocket() string { return filepath.Join(s.dir, socketName) }

// Advance brings files, counters, ports and pods to a moment. A moment before
// the start is the start.
func (s *Simulation) Advance(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return fmt.Errorf("simulation of %s: %w", s.scenario.Node, os.ErrClosed)
	}
	t := max(now.Sub(s.epoch), 0)
	begun, ended, err := s.machine.advance(t)
	if s.ground != nil {
		return err
	}
	for _, r := range ended {
		s.api.store.remove(pods(), r.pod.Namespace, r.name)
	}
	for _, r := range begun {
		if !r.pod.Unscheduled {
			for _, phase := range []string{"Pending", "Running"} {
				s.api.store.put(pods(), r.object(s.scenario, s.epoch.Add(r.begun), phase))
			}
		}
	}
	if len(begun)+len(ended) > 0 {
		s.kubelet.set(s.machine.resources())
	}
	return err
}

// advance brings the node to a moment.
func (m *machine) advance(t time.Duration) (begun, ended []*run, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Store(int64(t))
	if m.ground != nil {
		err = errors.Join(m.changeGround(t), m.matchPods(t))
	} else {
		begun, ended, err = m.schedulePods(t)
	}
	m.changePorts(t)
	m.changeFaults(t)
	for _, f := range m.functions() {
		f.writeCounters(t)
	}
	return begun, ended, errors.Join(err, m.done())
}

// resources is what the kubelet gave to all pods.
func (m *machine) resources() []*podresources.PodResources {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*podresources.PodResources
	for _, r := range m.runs {
		if !r.pod.NoPodResource && r.pod.Resource != "" {
			all = append(all, r.resources())
		}
	}
	slices.SortFunc(all, func(a, b *podresources.PodResources) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return all
}

// tick is how often Run brings the simulation to the present.
const tick = 250 * time.Millisecond

// Run lets the simulation go with its clock until ctx ends, and returns the
// error of ctx, or the first of the files.
func (s *Simulation) Run(ctx context.Context) error {
	s.machine.follow(func() time.Duration { return s.clock().Sub(s.epoch) })
	defer s.machine.follow(nil)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			if err := s.Advance(s.clock()); err != nil {
				return err
			}
		}
	}
}

// Close ends the simulation: watches, the socket, and all files.
func (s *Simulation) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return nil
	}
	s.isClosed = true
	var errs []error
	if s.api != nil {
		close(s.api.closed)
	}
	if s.ground != nil {
		errs = append(errs, s.ground.close())
	}
	if s.kubelet != nil {
		errs = append(errs, s.kubelet.close())
	}
	for _, name := range []string{"root", "netns", "nsfs", socketName} {
		errs = append(errs, os.RemoveAll(filepath.Join(s.dir, name)))
	}
	return errors.Join(errs...)
}
