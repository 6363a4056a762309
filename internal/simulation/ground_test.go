package simulation

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// real is a node with two netdevs and some pods, whose own RDMA nobody looks at.
const real = `
node: node1
netnsMode: shared
cards:
- {name: nic_0, pci: "0000:18:00.0", netdev: enp11s0f0np0, address: 172.16.11.201/24, mtu: 9000}
- {name: nic_1, pci: "0000:2a:00.0", netdev: enp12s0f0np0, address: 172.16.12.201/24, mtu: 1500}
pods:
- {namespace: research, name: llama-0, from: 5s, for: 35s, every: 60s, processes: 3}
- {namespace: research, name: other}
- {namespace: serving, name: chat, hostNetwork: true}
events:
- {do: down, devices: [nic_1], from: 20s, for: 10s}
`

// onReal is RDMA on it.
const onReal = `
realNode: true
cards:
- {name: mlx5_0, netdev: enp11s0f0np0, qpCounters: pid}
- {name: mlx5_1, netdev: enp12s0f0np0, speed: 200}
- {name: mlx5_2, netdev: enp13s0f0np0}
pods:
- {match: {HOSTNAME: "llama-*"}, processes: 2, connections: 3, traffic: {receive: 1G, transmit: 2G}}
- {match: {HOSTNAME: node1}, devices: [mlx5_1, mlx5_2], traffic: {receive: 100M}}
`

// grounded is a simulation on the node of another one, both with one clock.
type grounded struct {
	*running

	below *running
}

func beginOn(tb testing.TB, below *running) *grounded {
	tb.Helper()
	s, err := parse([]byte(onReal))
	if err != nil {
		tb.Fatal(err)
	}
	r := &running{tb: tb, now: below.now}
	sim, err := StartOn(below.Node(), s, memoryDir(tb), r.clock)
	if err != nil {
		tb.Fatal(err)
	}
	r.Simulation = sim
	tb.Cleanup(func() {
		if err := sim.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &grounded{running: r, below: below}
}

func (g *grounded) pass(d time.Duration) {
	g.below.pass(d)
	g.running.pass(d)
}

// owners returns the processes that have queue pairs on a card, and how many.
func (g *grounded) owners(id string) map[int]int {
	g.tb.Helper()
	client, err := g.Node().Own().RDMA()
	if err != nil {
		g.tb.Fatal(err)
	}
	defer client.Close()
	qps, err := client.QPs(g.function(id).index)
	if err != nil {
		g.tb.Fatal(err)
	}
	owners := map[int]int{}
	for _, q := range qps {
		owners[q.PID]++
	}
	return owners
}

// usersOf returns the processes of a pod of the real node that use RDMA.
func (g *grounded) usersOf(pod string, most int) []int {
	g.tb.Helper()
	i := slices.IndexFunc(g.below.machine.runs, func(r *run) bool { return strings.HasPrefix(r.name, pod) })
	if i < 0 {
		g.tb.Fatalf("no pod %s", pod)
	}
	return g.below.machine.runs[i].users[:most]
}

// TestRealNode checks what cards on a real node read as, and that nothing but
// RDMA is invented.
func TestRealNode(t *testing.T) {
	t.Parallel()
	g := beginOn(t, beginText(t, real))
	want := `kernel 6.12.48, shared, 0 GPUs
0000:0b:00.0 PF rail 0 mlx5_0 Ethernet ACTIVE 400 of 400 Gb/s, 4 lanes, 4 GIDs, enp11s0f0np0 mtu 9000 [172.16.11.201/24 fe80::ba3f:d2ff:fe68:8000/64]
0000:0c:00.0 PF rail 1 mlx5_1 Ethernet ACTIVE 200 of 200 Gb/s, 4 lanes, 4 GIDs, enp12s0f0np0 mtu 1500 [172.16.12.201/24 fe80::ba3f:d2ff:fe68:8040/64]
`
	if diff := cmp.Diff(want, summary(g.snapshot())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	below := g.below.snapshot()
	for i, d := range g.snapshot().Devices {
		if diff := cmp.Diff(below.Devices[i].Netdevs, d.Netdevs, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
			t.Errorf("netdevs of %s (-real +got):\n%s", d.RDMA.Name, diff)
		}
	}
	if err := g.Unseen(); err != nil {
		t.Errorf("all may be looked into: %v", err)
	}
	if id := g.Node().Own().ID(); id != g.below.Node().Own().ID() {
		t.Errorf("it is in namespace %v, want that of the node", id)
	}
	if proc := g.Node().FS().Path("proc"); proc != g.below.Node().FS().Path("proc") {
		t.Errorf("processes are in %s, want those of the node", proc)
	}
}

// TestRealUsers follows processes of pods that come and go.
func TestRealUsers(t *testing.T) {
	t.Parallel()
	g := beginOn(t, beginText(t, real))
	chat := g.usersOf("chat", 1)
	if diff := cmp.Diff(map[int]int{}, g.owners("mlx5_0")); diff != "" {
		t.Errorf("before there is a pod (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int]int{chat[0]: 8}, g.owners("mlx5_1")); diff != "" {
		t.Errorf("a pod on the host's network (-want +got):\n%s", diff)
	}
	g.pass(5 * time.Second)
	llama := g.usersOf("llama-0", 2)
	for _, pid := range llama {
		if g.owners("mlx5_0")[pid] != 8 || g.owners("mlx5_1")[pid] != 8 {
			t.Errorf("process %d has %v and %v", pid, g.owners("mlx5_0"), g.owners("mlx5_1"))
		}
	}
	if diff := cmp.Diff(map[int]int{llama[0]: 8, llama[1]: 8}, g.owners("mlx5_0")); diff != "" {
		t.Errorf("the oldest two of three processes (-want +got):\n%s", diff)
	}
	if got := g.connections(); got != 6 {
		t.Errorf("%d connections were asked for, want 3 of each process", got)
	}
	g.pass(35 * time.Second)
	if diff := cmp.Diff(map[int]int{}, g.owners("mlx5_0")); diff != "" {
		t.Errorf("after the pod (-want +got):\n%s", diff)
	}
	g.pass(25 * time.Second)
	again := g.usersOf("llama-0", 2)
	if diff := cmp.Diff(map[int]int{again[0]: 8, again[1]: 8}, g.owners("mlx5_0")); diff != "" || again[0] == llama[0] {
		t.Errorf("the next pod (-want +got):\n%s", diff)
	}
	if got := g.connections(); got != 12 {
		t.Errorf("%d connections were asked for, want 3 of each process that there was", got)
	}
}

// connections reads how many requests for connections the first card has sent.
func (g *grounded) connections() uint64 {
	g.tb.Helper()
	text, err := os.ReadFile(g.Node().FS().Sys("class/infiniband/mlx5_0/ports/1/cm_tx_msgs/req"))
	if err != nil {
		g.tb.Fatal(err)
	}
	requests, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		g.tb.Fatal(err)
	}
	return requests
}

// TestRealTraffic checks that traffic begins and ends with pods, that it stops
// while the real netdev is down, and that counters never fall.
func TestRealTraffic(t *testing.T) {
	t.Parallel()
	g := beginOn(t, beginText(t, real))
	var bytes [2][]uint64
	var states []string
	for range 14 {
		for i, card := range []string{"mlx5_0", "mlx5_1"} {
			bytes[i] = append(bytes[i], g.driverStatistics(card)["rx_vport_rdma_unicast_bytes"]/1e6)
		}
		states = append(states, g.snapshot().Devices[1].RDMA.Ports[0].State)
		g.pass(5 * time.Second)
	}
	// From 5 s to 40 s and from 65 s there is the first pod.
	want := []uint64{0, 0, 5000, 10000, 15000, 20000, 25000, 30000, 35000, 35000, 35000, 35000, 35000, 35000}
	if diff := cmp.Diff(want, bytes[0]); diff != "" {
		t.Errorf("MB of rail 0 (-want +got):\n%s", diff)
	}
	// The second is there all the time, and from 20 s to 30 s nothing goes through.
	want = []uint64{0, 500, 6000, 11500, 17000, 17000, 17000, 22500, 28000, 28500, 29000, 29500, 30000, 30500}
	if diff := cmp.Diff(want, bytes[1]); diff != "" {
		t.Errorf("MB of rail 1 (-want +got):\n%s", diff)
	}
	if want := "AAAADDAAAAAAAA"; want != initials(states) {
		t.Errorf("states %v, want %s", states, want)
	}
	if got := g.driverStatistics("mlx5_1")["link_down_events_phy"]; got != 1 {
		t.Errorf("the link was down %d times, want once", got)
	}
}

func initials(words []string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteByte(w[0])
	}
	return b.String()
}

// TestRealQueuePairCounters checks what is counted of each process of a pod.
func TestRealQueuePairCounters(t *testing.T) {
	t.Parallel()
	g := beginOn(t, beginText(t, real))
	g.pass(5 * time.Second)
	g.pass(10 * time.Second)
	client, err := g.Node().Own().RDMA()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	sets, err := client.QPCounters(g.function("mlx5_0").index, 1)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, set := range sets {
		for _, c := range set.Counters {
			if c.Name == "rx_write_requests" {
				got = append(got, fmt.Sprint(set.PID, " ", c.Value))
			}
		}
	}
	var want []string
	const messages uint64 = 10_000_000_000 / (1 << 20)
	const writes = messages - messages/readsOf - messages/sendsOf - messages/atomicsOf
	for _, pid := range g.usersOf("llama-0", 2) {
		want = append(want, fmt.Sprint(pid, " ", writes/2))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes by process (-want +got):\n%s", diff)
	}
}

// TestRealLinkGone takes the netdev away below a card, and brings another of its
// name.
func TestRealLinkGone(t *testing.T) {
	t.Parallel()
	g := beginOn(t, beginText(t, real))
	links, err := g.Node().Subscribe(rtnl.Links)
	if err != nil {
		t.Fatal(err)
	}
	defer links.Close()
	below := g.below.machine.host.kernel
	var was rtnl.Link
	below.Change(func(k *fakekernel.Facts) {
		i := slices.IndexFunc(k.Links, func(l rtnl.Link) bool { return l.Name == "enp11s0f0np0" })
		was = k.Links[i]
		k.Links = slices.Delete(k.Links, i, i+1)
	})
	g.running.pass(time.Second)
	d := g.snapshot().Devices[0]
	if p := d.RDMA.Ports[0]; p.State != "DOWN" || len(d.Netdevs) != 0 {
		t.Errorf("without a netdev: %s, netdevs %v, want DOWN and none", p.State, d.Netdevs)
	}
	was.Index, was.MTU, was.Kind = 77, 1500, "veth"
	below.Change(func(k *fakekernel.Facts) { k.Links = append(k.Links, was) })
	g.running.pass(time.Second)
	d = g.snapshot().Devices[0]
	if p := d.RDMA.Ports[0]; p.State != "ACTIVE" || len(d.Netdevs) != 1 || d.Netdevs[0].Index != 77 || d.Netdevs[0].MTU != 1500 {
		t.Errorf("with another: %s, netdevs %+v", p.State, d.Netdevs)
	}
	var heard []string
	for len(heard) < 2 {
		events, err := links.Receive()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			heard = append(heard, fmt.Sprintln(e.Link.Index == 77, e.Link.ParentDev, e.Deleted))
		}
	}
	if diff := cmp.Diff([]string{"false 0000:0b:00.0 true\n", "true 0000:0b:00.0 false\n"}, heard); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestStartOnRefuses checks that a real node without the netdevs, or whose
// processes may not be looked into, is an error that says so.
func TestStartOnRefuses(t *testing.T) {
	t.Parallel()
	below := beginText(t, real)
	s, err := parse([]byte("realNode: true\ncards: [{name: mlx5_0, netdev: ens1np0, pci: '0000:18:00.0'}]"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "has none of the netdevs that they stand on, but lo, enp11s0f0np0, enp12s0f0np0"
	if _, err := StartOn(below.Node(), s, t.TempDir(), time.Now); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q in it", err, want)
	}
	if _, err := Start(s, t.TempDir(), time.Now); err == nil || !strings.Contains(err.Error(), "realNode: true") {
		t.Errorf("Start: %v, want that it is about realNode", err)
	}
	if _, err := StartOn(below.Node(), below.scenario, t.TempDir(), time.Now); err == nil || !strings.Contains(err.Error(), "realNode: false") {
		t.Errorf("StartOn: %v, want that it is about realNode", err)
	}
}

// TestUnseen checks that whoever may not look into a process is told so, and finds
// the others.
func TestUnseen(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	below := beginText(t, real)
	pid := below.machine.runs[0].pids[0]
	if err := os.Chmod(below.Node().FS().Path("proc", fmt.Sprint(pid), "environ"), 0); err != nil {
		t.Fatal(err)
	}
	g := beginOn(t, below)
	if err := g.Unseen(); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "environment of 1 processes, which needs CAP_SYS_PTRACE") {
		t.Errorf("error %v, want what it needs", err)
	}
	if g.owners("mlx5_1")[g.usersOf("chat", 1)[0]] == 0 {
		t.Error("a process that may be looked into was not found")
	}
}

// TestRealLinks stands cards on netdevs of the running kernel.
func TestRealLinks(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "enp11s0f0np0", "n1r0")
		s, err := parse([]byte("realNode: true\ncards: [{name: mlx5_0, netdev: enp11s0f0np0}]"))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		r := &running{tb: t, now: now}
		if r.Simulation, err = StartOn(node.Running(sysfs.New("/")), s, filepath.Join(t.TempDir(), "node"), r.clock); err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		d := r.snapshot().Devices[0]
		if len(d.Netdevs) != 1 || d.Netdevs[0].Name != "enp11s0f0np0" || d.PCI.Driver != "mlx5_core" {
			t.Errorf("device %+v", d)
		}
		if up := d.Netdevs[0].Up && d.Netdevs[0].Running; up != (d.RDMA.Ports[0].State == "ACTIVE") {
			t.Errorf("port %s of a netdev that is up: %v", d.RDMA.Ports[0].State, up)
		}
	})
}

// BenchmarkAdvanceReal is a tick on a real node on which nothing changes, against
// BenchmarkAdvance on an invented one.
func BenchmarkAdvanceReal(b *testing.B) {
	g := beginOn(b, beginText(b, real))
	b.ReportAllocs()
	for b.Loop() {
		g.running.pass(tick)
	}
}
