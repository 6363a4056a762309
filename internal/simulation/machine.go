package simulation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
)

// machine is the kernel of the node: its files and its namespaces.
type machine struct {
	scenario *Scenario
	ground   *ground // nil where the node is invented
	release  string  // of the kernel
	dir      string
	crowds   []crowd // processes that use devices, by the pod of the scenario that they match
	cards    []*card
	now      atomic.Int64 // how far the scenario is
	live     atomic.Pointer[func() time.Duration]

	mu     sync.Mutex // held for all that follows, and while anything moves
	host   *namespace
	spaces []*namespace // those of pods
	made   int          // namespaces
	links  int          // netdevs
	runs   []*run
}

// moment is how far the scenario is: as far as Advance has brought it, or while
// it runs, as far as its clock says.
func (m *machine) moment() time.Duration {
	now := time.Duration(m.now.Load())
	if live := m.live.Load(); live != nil {
		return max(now, (*live)())
	}
	return now
}

// follow has counters go with a clock, nil for none.
func (m *machine) follow(live func() time.Duration) {
	if live == nil {
		m.live.Store(nil)
		return
	}
	m.live.Store(&live)
}

// newMachine makes an invented node below a directory, without pods.
func newMachine(s *Scenario, dir string) (*machine, error) {
	m := &machine{scenario: s, dir: dir, release: s.Kernel}
	if err := m.addHost(); err != nil {
		return nil, err
	}
	m.addSystem()
	m.addRDMA()
	m.addCards()
	return m, m.host.tree.done()
}

// addHost adds the namespace of the host, with nothing in it.
func (m *machine) addHost() error {
	for _, d := range []string{"root/sys", "nsfs", "netns"} {
		if err := os.MkdirAll(filepath.Join(m.dir, d), 0o755); err != nil { //nolint:gosec // as /sys
			return err
		}
	}
	host, err := newNamespace(filepath.Join(m.dir, "nsfs"), 0, m.facts(), newTree(filepath.Join(m.dir, "root")))
	m.host, m.made = host, 1
	return err
}

// facts are those of a namespace with nothing but a loopback device.
func (m *machine) facts() fakekernel.Facts {
	return fakekernel.Facts{
		System: &rdmanl.System{
			NetNSMode: m.scenario.NetNSMode, CopyOnFork: new(true), PrivilegedQKey: new(false), MonitorSupport: new(true),
		},
		RDMACM: &rdmanl.CharDevice{Name: "rdma_cm", Major: 10, Minor: 58, ABI: 4},
		Links: []rtnl.Link{{
			Index: 1, Name: "lo", Type: 772, Address: "00:00:00:00:00:00", Up: true, Running: true, OperState: "unknown", MTU: 65536,
		}},
		Devlink: []fakekernel.Reporter{},
	}
}

// addSystem writes what a node has beside RDMA.
func (m *machine) addSystem() {
	t := m.host.tree
	t.write("proc/sys/kernel/osrelease", m.scenario.Kernel)
	t.write("proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz-"+m.scenario.Kernel+" ro iommu=pt")
	t.hardLink("proc/thread-self/ns/net", m.host.file)
	t.hardLink("proc/self/ns/net", m.host.file)
	for pid, name := range map[int]string{1: "systemd", 1733: "containerd", 2019: "kubelet"} {
		cgroup := "/system.slice/" + name + ".service"
		if pid == 1 {
			cgroup = "/init.scope"
		}
		m.addProcess(pid, name, 10, m.cgroupText(cgroup))
		t.hardLink(fmt.Sprintf("proc/%d/ns/net", pid), m.host.file)
	}
	t.writeAll("sys/devices/virtual/net/lo", map[string]string{
		"ifindex": "1", "address": "00:00:00:00:00:00", "type": "772", "mtu": "65536", "operstate": "unknown", "carrier": "1", "dev_port": "0",
	})
	t.link("sys/class/net/lo", "sys/devices/virtual/net/lo")
	t.write("sys/module/nvidia/initstate", "live")
	t.mkdir("sys/bus/pci/drivers/nvidia")
}

// addRDMA writes what a node with RDMA has beside its cards.
func (m *machine) addRDMA() {
	t := m.host.tree
	mode := "N"
	if m.scenario.NetNSMode == modeShared {
		mode = "Y"
	}
	t.write("sys/module/ib_core/parameters/netns_mode", mode)
	for _, module := range []string{"ib_core", "ib_cm", "ib_umad", "ib_uverbs", "rdma_cm", "rdma_ucm"} {
		t.write("sys/module/"+module+"/initstate", "live")
	}
	t.mkdir("sys/class/infiniband")
	t.mkdir("sys/bus/pci/devices")
	t.writeAll("sys/devices/virtual/misc/rdma_cm", map[string]string{"dev": "10:58"})
	t.link("sys/class/misc/rdma_cm", "sys/devices/virtual/misc/rdma_cm")
	t.write("dev/infiniband/rdma_cm", "")
}

// addCards adds the cards: all PFs are found before the VFs.
func (m *machine) addCards() {
	for i := range m.scenario.Cards {
		c := newCard(m.scenario, i)
		if m.ground != nil {
			c.stand(m.ground, m.moment)
		}
		c.state = c.at(0)
		m.cards = append(m.cards, c)
	}
	m.crowds = make([]crowd, len(m.scenario.Pods))
	growing := newGrowing(m.scenario, m.cards, m.crowds)
	m.links = 1
	for _, c := range m.cards {
		for _, module := range []string{c.driver.net, c.driver.rdma} {
			if module != "" {
				m.host.tree.write("sys/module/"+module+"/initstate", "live")
			}
		}
		m.addSources(c)
		m.addCard(c)
	}
	for i, f := range m.functions() {
		f.hardware = growing.counters(f, f.card.driver.hardware)
		f.whole = growing.counters(f, f.card.driver.whole)
		f.statistics = growing.counters(f, f.card.driver.statisticsOf(f.card.spec))
		f.cm = growing.counters(f, cmRows)
		if f.card.driver.hasPMA {
			f.pma = growing.counters(f, pmaRows)
		}
		f.index, f.rdma = uint32(i), m.rdmaName(f, i)
		switch {
		case f.real != nil:
			f.netPlace, f.name = m.host, f.netdev
			f.addNetdevFiles()
		case f.netdev != "" && m.ground == nil:
			m.links++
			f.link = m.links
			m.putNetdev(f, m.host, f.netdev)
		}
		m.putRDMA(f, m.host)
	}
	for _, c := range m.cards {
		m.addReporters(c)
	}
}

// rdmaName is the name of an RDMA device: that of a VF is that of its PF with
// another number, which counts on behind the PFs.
func (m *machine) rdmaName(f *function, number int) string {
	if f.vf < 0 {
		return f.card.spec.Name
	}
	stem := strings.TrimRight(f.card.spec.Name, "0123456789")
	for ; ; number++ {
		name := stem + strconv.Itoa(number)
		if !slices.ContainsFunc(m.functions(), func(o *function) bool { return o != f && (o.rdma == name || o.id == name) }) {
			return name
		}
	}
}

// functions returns all of them: PFs, then VFs.
func (m *machine) functions() []*function {
	var pfs, vfs []*function
	for _, c := range m.cards {
		pfs = append(pfs, c.functions[0])
		vfs = append(vfs, c.functions[1:]...)
	}
	return append(pfs, vfs...)
}

// addSources adds what sends and receives on the functions of a card from the
// start.
func (m *machine) addSources(c *card) {
	if t := c.spec.Traffic; t != nil {
		c.functions[0].add(m.newSource(c, nil, t, schedule{}, c.spec.Name))
	}
	for _, f := range c.functions {
		for i := range m.scenario.Pods {
			p := &m.scenario.Pods[i]
			if p.Traffic != nil && p.Match == nil && slices.Contains(p.Devices, f.id) {
				f.add(m.newSource(c, p, p.Traffic, p.schedule(), p.Namespace, p.Name, f.id))
			}
		}
	}
}

// newSource returns traffic on a card in some times, which differs from others
// by some names.
func (m *machine) newSource(c *card, p *Pod, t *Traffic, times schedule, names ...string) *source {
	return &source{
		pod: p, receive: t.Receive.Value, transmit: t.Transmit.Value, message: t.MessageSize.Value, isIdle: c.isCut,
		flow: flow{times: times, brakes: c.brakes(m.scenario), shape: shape{
			pattern: t.Pattern, period: t.Period.Duration, busy: t.Busy, jitter: t.Jitter, seed: hash(m.scenario.Seed, names...),
		}},
	}
}

// find returns the namespace with an identity, if it is not over.
func (m *machine) find(id netns.ID) (*namespace, bool) {
	if id == m.host.id {
		return m.host, true
	}
	i := slices.IndexFunc(m.spaces, func(n *namespace) bool { return n.id == id && !n.isOver })
	if i < 0 {
		return nil, false
	}
	return m.spaces[i], true
}

// errGone is the error of a namespace that has ended.
func errGone(path string) error {
	return fmt.Errorf("network namespace: %w", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist})
}

// done returns the errors of all files.
func (m *machine) done() error {
	errs := []error{m.host.tree.done()}
	for _, n := range m.spaces {
		errs = append(errs, n.tree.done())
	}
	return errors.Join(errs...)
}
