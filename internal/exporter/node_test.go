package exporter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"railhead/internal/attribution"
	"railhead/internal/inventory"
	"railhead/internal/kernel/devlink"
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
	"railhead/internal/kernel/uevent"
)

// testNode is a node of mlx5 cards whose pods have VFs for themselves. What its
// devices have counted is set by the test.
type testNode struct {
	dir     string
	counted atomic.Uint64 // what each counter is
	command atomic.Int64  // how long a firmware command takes; nanoseconds

	mu      sync.Mutex
	own     *fakekernel.Kernel
	pods    map[string]*fakekernel.Kernel // by path
	holding map[string]int                // how many hold a pod's namespace open
	opened  int
	cards   [][]*function
	owners  map[string]string // pod by PCI address
}

// function is a PF or VF.
type function struct {
	index  int
	name   string
	netdev string
	pci    string
	pod    string // in whose namespace it is; empty for the node's
}

func newTestNode(tb testing.TB, cards, vfs int) *testNode {
	tb.Helper()
	n := &testNode{
		dir:     tb.TempDir(),
		pods:    map[string]*fakekernel.Kernel{},
		holding: map[string]int{},
		owners:  map[string]string{},
	}
	for c := range cards {
		card := make([]*function, 0, 1+vfs)
		for i := range 1 + vfs {
			index := c*(1+vfs) + i
			card = append(card, &function{
				index: index, name: "mlx5_" + strconv.Itoa(index), netdev: "eth" + strconv.Itoa(index),
				pci: fmt.Sprintf("0000:%02x:00.%d", 0x17+c, i),
			})
		}
		n.cards = append(n.cards, card)
	}
	for _, dir := range []string{"proc", "sys", "pods"} {
		if err := os.Mkdir(n.dir+"/"+dir, 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	n.own = fakekernel.New(n.facts(""))
	return n
}

// facts are what the kernel of a namespace knows.
func (n *testNode) facts(pod string) fakekernel.Facts {
	f := fakekernel.Facts{
		System: &rdmanl.System{NetNSMode: "exclusive"},
		HCAs:   map[uint32]*fakekernel.HCA{}, NICs: map[int]*fakekernel.NIC{}, Devlink: []fakekernel.Reporter{},
	}
	for _, card := range n.cards {
		for i, fn := range card {
			if fn.pod != pod {
				continue
			}
			statistics, ethtool := statisticsOfVF, ethtoolOfVF
			if i == 0 {
				statistics, ethtool = statisticsOfPF, ethtoolOfPF
			}
			f.RDMA = append(f.RDMA, rdmanl.Device{
				Index: uint32(fn.index), Name: fn.name, NodeType: "ca", Protocol: "roce", PortCount: 1,
				Ports: []rdmanl.Port{{
					DeviceIndex: uint32(fn.index), DeviceName: fn.name, Number: 1, State: "ACTIVE", PhysState: "LINK_UP",
					NetdevIndex: fn.index + 1, NetdevName: fn.netdev,
				}},
			})
			f.HCAs[uint32(fn.index)] = &fakekernel.HCA{Ports: map[int]*fakekernel.HCAPort{
				1: {Counters: []rdmanl.CounterStatus{{Name: "out_of_buffer", Enabled: true}, {Name: "rx_write_requests", Enabled: true}}, Values: n.answer(statistics)},
			}}
			f.Links = append(f.Links, rtnl.Link{Index: fn.index + 1, Name: fn.netdev})
			names := []string{"rx_vport_rdma_unicast_bytes", "tx_vport_rdma_unicast_bytes", "rx_prio3_pause", "tx_prio3_pause"}
			f.NICs[fn.index+1] = &fakekernel.NIC{StatNames: names[:statsOf(i)], Stats: n.answer(ethtool)}
		}
	}
	return f
}

// How many firmware commands mlx5 makes of a question, as DESIGN has it.
const (
	statisticsOfPF, statisticsOfVF = 3, 1
	ethtoolOfPF, ethtoolOfVF       = 30, 4
)

// statsOf is how many statistics the netdev of a function of a card has.
func statsOf(function int) int {
	if function == 0 {
		return 4
	}
	return 2
}

// answer sets counters, after as long as a number of firmware commands takes. It
// waits outside of Go's timers, which are not good to microseconds.
func (n *testNode) answer(commands int) func(dst []uint64) {
	return func(dst []uint64) {
		if d := n.command.Load() * int64(commands); d > 0 {
			t := syscall.NsecToTimespec(d)
			_ = syscall.Nanosleep(&t, nil) // a signal may end it early
		}
		for i := range dst {
			dst[i] = n.counted.Load()
		}
	}
}

// give moves a VF into a new namespace of a pod, and returns its path.
func (n *testNode) give(tb testing.TB, card, vf int, pod string) {
	tb.Helper()
	n.cards[card][vf].pod = pod
	n.owners[n.cards[card][vf].pci] = pod
	path := n.path(pod)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		tb.Fatal(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[path] = fakekernel.New(n.facts(pod))
	n.own.Change(func(f *fakekernel.Facts) { *f = n.facts("") })
}

// take ends the pod of a card's first VF, which comes home.
func (n *testNode) take(tb testing.TB, card int) {
	tb.Helper()
	fn := n.cards[card][1]
	path := n.path(fn.pod)
	fn.pod = ""
	delete(n.owners, fn.pci)
	if err := os.Remove(path); err != nil {
		tb.Fatal(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holding[path] != 0 {
		tb.Errorf("the namespace of a pod that ends is held %d times", n.holding[path])
	}
	delete(n.pods, path)
	n.own.Change(func(f *fakekernel.Facts) { *f = n.facts("") })
}

func (n *testNode) path(pod string) string { return n.dir + "/pods/" + pod }

// snapshot is what an inventory.Watcher would have.
func (n *testNode) snapshot(tb testing.TB) *inventory.Snapshot {
	tb.Helper()
	s := &inventory.Snapshot{System: inventory.System{NetNSMode: "exclusive"}}
	for rail, card := range n.cards {
		for i, fn := range card {
			index := uint32(fn.index)
			d := inventory.Device{
				ID: fn.pci, Kind: inventory.PF, Rail: &rail,
				PCI: &inventory.PCI{Address: fn.pci, Driver: "mlx5_core"},
				RDMA: &inventory.RDMA{
					Name: fn.name, Index: &index, Protocol: "roce", Firmware: "28.39.1002", BoardID: "MT_0000000838", HCAType: "MT4129",
					NodeGUID: "0c42:a103:0065:" + fmt.Sprintf("%04x", fn.index), SysImageGUID: "0c42:a103:0065:0000",
					Ports: []inventory.Port{{Number: 1, LinkLayer: inventory.Ethernet, State: "ACTIVE", PhysState: "LINK_UP", Netdev: fn.netdev, Gigabits: 400}},
				},
				Netdevs: []inventory.Netdev{{Name: fn.netdev, Index: fn.index + 1}},
			}
			if i > 0 {
				d.Kind, d.VF, d.Parent = inventory.VF, &i, card[0].pci
			}
			if fn.pod != "" {
				id, err := netns.Stat(n.path(fn.pod))
				if err != nil {
					tb.Fatal(err)
				}
				where := &inventory.NetNS{ID: id, Path: n.path(fn.pod)}
				d.RDMA.NetNS, d.Netdevs[0].NetNS = where, where
			}
			s.Devices = append(s.Devices, d)
		}
	}
	return s
}

// Holder tells whose VF is, as the kubelet does.
func (n *testNode) Holder(address string) (namespace, name string, ok bool) {
	pod, ok := n.owners[address]
	return "default", pod, ok
}

func (n *testNode) attributor() *attribution.Attributor {
	return attribution.New(n.FS(), attribution.Options{Allocations: n})
}

func (n *testNode) FS() sysfs.FS { return sysfs.New(n.dir) }

func (n *testNode) Own() node.NetNS { return &testNS{Kernel: n.own, done: func() {}} }

func (n *testNode) Open(path string) (node.NetNS, error) {
	id, err := netns.Stat(path)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.pods[path]
	if k == nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	n.holding[path]++
	n.opened++
	return &testNS{Kernel: k, id: id, sys: n.dir + "/sys", done: func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.holding[path]--
	}}, nil
}

func (n *testNode) Subscribe(...rtnl.Group) (*rtnl.Subscription, error) {
	return nil, errors.ErrUnsupported
}
func (n *testNode) Uevents() (*uevent.Listener, error) { return nil, errors.ErrUnsupported }
func (n *testNode) Monitor() (*rdmanl.Monitor, error)  { return nil, errors.ErrUnsupported }

// testNS is an open namespace of a testNode.
type testNS struct {
	*fakekernel.Kernel

	id   netns.ID
	sys  string
	done func()
}

func (t *testNS) ID() netns.ID                      { return t.id }
func (t *testNS) RDMA() (*rdmanl.Client, error)     { return t.Kernel.RDMA(), nil }
func (t *testNS) Links() (*rtnl.Client, error)      { return t.Kernel.Links(), nil }
func (t *testNS) Ethtool() (*ethtool.Client, error) { return t.Kernel.Ethtool() }
func (t *testNS) Devlink() (*devlink.Client, error) { return t.Kernel.Devlink() }
func (t *testNS) SysFS() (*os.File, error)          { return os.Open(t.sys) }

func (t *testNS) Close() error {
	t.done()
	return nil
}

// clock is the time of a test.
type clock struct{ unix atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.unix.Store(time.Unix(1_700_000_000, 0).UnixNano())
	return c
}

func (c *clock) now() time.Time { return time.Unix(0, c.unix.Load()).UTC() }

func (c *clock) pass(d time.Duration) time.Time {
	c.unix.Add(int64(d))
	return c.now()
}
