package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"railhead/hack/cluster/plan"
	"railhead/hack/cluster/testcluster"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
)

// faultyRail is a cluster whose pods run on eight rails while one of these has a
// fault.
type faultyRail struct {
	*cluster
	ns      string
	running []attachedPod // on two nodes, from before the fault
	program string        // railhead, for the command line
}

// oneRail breaks one of eight rails in each way, and wants a pod that starts then
// to say what is wrong and to start when nothing is any more, and all others to go
// on.
func oneRail(t *testing.T, c *cluster) {
	t.Helper()
	c.networks(t, filepath.Join(printed, "network.yaml"))
	f := &faultyRail{cluster: c, ns: c.Namespace(t), program: filepath.Join(t.TempDir(), "railhead")}
	f.running = c.rdmaTools(t, f.ns)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", f.program, "railhead/cmd/railhead").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Run("foreign address", f.foreignAddress) // the first: the next address of the pool is known
	t.Run("gateway down", f.gatewayDown)
	t.Run("gateway late", f.gatewayLate)
}

// starts begins to start a pod on node1.
func (f *faultyRail) starts(t *testing.T, name string) {
	t.Helper()
	f.Apply(t, f.ns, railsPod(name, "node1"))
	f.deleteAfter(t, f.ns, "pod/"+name, "app="+name)
}

// tells waits for an Event of ours about a pod, with all of some words.
func (f *faultyRail) tells(t *testing.T, pod string, words ...*regexp.Regexp) {
	t.Helper()
	testcluster.Eventually(t, func() string {
		events := f.Kubectl(t, "get", "events", "-n", f.ns, "--field-selector=involvedObject.name="+pod, "-o", `jsonpath={range .items[*]}{.source.component}{.reportingComponent} {.reason}: {.message}{"\n"}{end}`)
		for event := range strings.Lines(events) {
			if !strings.HasPrefix(event, "kubelet") && !slices.ContainsFunc(words, func(w *regexp.Regexp) bool { return !w.MatchString(event) }) {
				return ""
			}
		}
		return fmt.Sprintf("an Event of ours with %v:\n%s", words, events)
	})
}

// word is a text with nothing of a word, a number or an address before or behind it.
func word(text string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^\w.:])` + regexp.QuoteMeta(text) + `($|\.?[^\w.])`)
}

// unharmed wants the pods from before to reach each other, and one on node1 that
// has started since to reach them.
func (f *faultyRail) unharmed(t *testing.T, since string) attachedPod {
	t.Helper()
	f.reachEachOther(t, f.ns, f.running[0], f.running[1])
	var started attachedPod
	testcluster.Eventually(t, func() string { // the annotation comes a moment after the pod
		all := f.attached(t, f.ns, "app="+since)
		if len(all) != 1 || len(all[0].addresses) != 9 {
			return fmt.Sprintf("%s with nine interfaces: %v", since, all)
		}
		started = all[0]
		return ""
	})
	f.reachEachOther(t, f.ns, started, f.running[1])
	return started
}

// gatewayDown takes the gateway of one rail away, and brings it back.
func (f *faultyRail) gatewayDown(t *testing.T) {
	rail := f.Plan().Rails[2]
	gateway := rail.Gateways[0]
	f.OnNode(t, plan.Fabric, "ip", "addr", "del", gateway.String(), "dev", rail.Bridge)
	back := func(ctx context.Context) {
		if out, err := f.TryOnNode(ctx, plan.Fabric, "ip", "addr", "replace", gateway.String(), "dev", rail.Bridge); err != nil {
			t.Errorf("%s%v", out, err)
		}
	}
	t.Cleanup(func() { back(context.Background()) })
	f.starts(t, "down")
	f.tells(t, "down", word("net3"), word("rail 2"), word(rail.Netdev), word(gateway.Addr().String()), unanswered)
	f.reachEachOther(t, f.ns, f.running[0], f.running[1])
	back(t.Context())
	f.Ready(t, f.ns, "down")
	f.unharmed(t, "down")
}

// unanswered is how long was waited for a gateway, by as many requests as there are
// by default.
var unanswered = regexp.MustCompile(`did not answer within [\d.]+m?s \(3 requests\)`)

// gatewayLate has the gateway of one rail answer after the pod has given it up, and
// then when it is asked again, but not at once.
func (f *faultyRail) gatewayLate(t *testing.T) {
	rail := f.Plan().Rails[3]
	gateway := f.slowGateway(t, rail)
	f.starts(t, "late")
	f.tells(t, "late", word("net4"), word("rail 3"), word(rail.Netdev), word(gateway.address.String()), unanswered)
	f.reachEachOther(t, f.ns, f.running[0], f.running[1])
	gateway.answer(t)
	f.Ready(t, f.ns, "late")
	f.unharmed(t, "late")
	f.explainsGateways(t, "late", gateway, rail)
}

// explainsGateways wants the command line to tell how often a pod has asked for each
// of its gateways, and where the slow one, that of net4, is.
func (f *faultyRail) explainsGateways(t *testing.T, pod string, slow *slowGateway, rail plan.Rail) {
	t.Helper()
	var explained struct {
		Attachment struct {
			Checks []struct {
				Interface, Kind, Address, MAC, Waited string
				Failed                                bool
				Tries                                 int
			}
		}
	}
	f.railhead(t, &explained, "explain", "pod", f.ns+"/"+pod)
	tries := map[string]int{}
	for _, check := range explained.Attachment.Checks {
		if check.Failed || check.Waited == "" {
			t.Errorf("explain shows %+v, want it well and how long that took", check)
		}
		if check.Kind != "gateway" {
			continue
		}
		tries[check.Interface] = check.Tries
		if check.Tries < 1 || check.Tries > 3 {
			t.Errorf("explain shows %+v, want one to three tries", check)
		}
		if check.Interface == "net4" && (check.Address != slow.address.String() || check.MAC != rail.MAC) {
			t.Errorf("explain shows %+v, want %s at %s", check, slow.address, rail.MAC)
		}
	}
	mac, err := net.ParseMAC(strings.TrimSpace(f.Exec(t, f.ns, pod, "cat", "/sys/class/net/net4/address")))
	if err != nil {
		t.Fatal(err)
	}
	// The kernel asks again too, where the agent has no time to for a second.
	if requests := slow.requests(mac); len(tries) != 8 || requests < 2 || tries["net4"] > requests {
		t.Errorf("explain shows that gateways were asked %v times, want all eight; that of net4 was asked %d times", tries, requests)
	}
	row := regexp.MustCompile(`net4 +gateway +` + regexp.QuoteMeta(slow.address.String()) + fmt.Sprintf(` .* [\d.]+m?s +%d\n`, tries["net4"]))
	if text := f.says(t, "explain", "pod", f.ns+"/"+pod); !row.MatchString(text) {
		t.Errorf("explain does not show the %d tries of the gateway of net4:\n%s", tries["net4"], text)
	}
}

// foreignAddress gives a host of nobody's, on the switch of one rail, the address
// that a pod would get.
func (f *faultyRail) foreignAddress(t *testing.T) {
	const pool, mac = "gpu5-net15", "02:00:5e:00:53:01"
	rail := f.Plan().Rails[4]
	address := f.next(t, pool, "node1")
	f.foreignHost(t, rail, mac, netip.PrefixFrom(address, rail.Gateways[0].Bits()))
	other := f.running[1]
	testcluster.Eventually(t, func() string { // a bridge passes on by a new port once the kernel has seen its carrier
		if _, err := f.TryKubectl(t.Context(), "", "exec", "-n", f.ns, other.name, "--", "ping", "-c", "1", "-w", "60", "-I", "net5", address.String()); err != nil {
			return err.Error()
		}
		return ""
	})
	f.starts(t, "contested")
	f.tells(t, "contested", word("net5"), word("rail 4"), word(rail.Netdev), word(address.String()), word(mac))
	f.reachEachOther(t, f.ns, f.running[0], f.running[1])
	f.Ready(t, f.ns, "contested")
	started := f.unharmed(t, "contested")
	if got := started.addresses["net5"]; slices.Contains(got, address.String()) {
		t.Errorf("net5 has %v, which somebody else has", got)
	}
	testcluster.Eventually(t, func() string { // the controller hears of it behind the pod's answer
		for _, run := range f.runs(t, pool) {
			if run.State == "quarantined" && run.Addresses == address.String() && strings.Contains(run.Reason, mac) {
				return ""
			}
		}
		return fmt.Sprintf("%s in quarantine for %s: %+v", address, mac, f.runs(t, pool))
	})
	// Who reaches that host still does.
	f.Exec(t, f.ns, other.name, "ping", "-c", "1", "-w", "60", "-I", "net5", address.String())
	if neighbour := f.Exec(t, f.ns, other.name, "ip", "neigh", "show", address.String(), "dev", "net5"); !strings.Contains(neighbour, mac) {
		t.Errorf("%s takes for who has %s: %s, want %s", other.name, address, neighbour, mac)
	}
	f.OnNode(t, plan.Fabric, "ip", "link", "set", "foreign", "down")
	f.release(t, pool, address)
}

// release says, as operators do, that nobody uses an address in quarantine any more.
func (f *faultyRail) release(t *testing.T, pool string, address netip.Addr) {
	t.Helper()
	ledgers := f.Kubectl(t, "get", "poolledgers", "-o", `jsonpath={range .items[?(@.spec.pool=="`+pool+`")]}{.metadata.name}{"\n"}{end}`)
	f.Kubectl(t, slices.Concat([]string{"annotate", "--overwrite", "poolledgers"}, strings.Fields(ledgers), []string{"railhead.io/release=" + address.String()})...)
	testcluster.Eventually(t, func() string {
		for _, run := range f.runs(t, pool) {
			if run.State == "quarantined" {
				return fmt.Sprintf("the end of the quarantine of %s: %+v", address, run)
			}
		}
		return ""
	})
}

// says runs the command line against the cluster.
func (f *faultyRail) says(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), f.program, append(args, "--kubeconfig", f.Dir().Kubeconfig())...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("railhead %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// railhead is says for data.
func (f *faultyRail) railhead(t *testing.T, into any, args ...string) {
	t.Helper()
	out := f.says(t, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("railhead %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// addressRun is addresses of a pool with one holder.
type addressRun struct{ Addresses, State, Node, Reason string }

// runs are the addresses of a pool that somebody has.
func (f *faultyRail) runs(t *testing.T, pool string) []addressRun {
	t.Helper()
	var books struct{ Runs []addressRun }
	f.railhead(t, &books, "addresses", "--pool", pool)
	return books.Runs
}

// next is the address of a pool that the next pod on a node gets: the first of those
// that it has for pods to come, as long as none of them was any pod's. What a pod has
// is known to others some time after the pod runs.
func (f *faultyRail) next(t *testing.T, pool, node string) (address netip.Addr) {
	t.Helper()
	testcluster.Eventually(t, func() string {
		runs := f.runs(t, pool)
		i := slices.IndexFunc(runs, func(r addressRun) bool { return r.State == "reserve" && r.Node == node })
		if i < 0 {
			return fmt.Sprintf("addresses of %s that %s has for pods to come: %+v", pool, node, runs)
		}
		first, _, _ := strings.Cut(runs[i].Addresses, "-")
		if slices.ContainsFunc(f.running, func(p attachedPod) bool { return p.has(first) }) {
			return fmt.Sprintf("the pod of %s: %+v", first, runs)
		}
		var err error
		if address, err = netip.ParseAddr(first); err != nil {
			t.Fatal(err)
		}
		return ""
	})
	return address
}

// has tells whether an address is that of one of a pod's interfaces.
func (p *attachedPod) has(address string) bool {
	for _, addresses := range p.addresses {
		if slices.Contains(addresses, address) {
			return true
		}
	}
	return false
}

// foreignHost connects a host to the switch of a rail, as long as the test runs.
func (f *faultyRail) foreignHost(t *testing.T, rail plan.Rail, mac string, address netip.Prefix) {
	t.Helper()
	hardware, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	host, err := netns.Open(fmt.Sprintf("/proc/self/fd/%d", kerneltest.NewNetNS(t).Fd()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	f.plug(t, host, "nic", "foreign", rail.Bridge)
	err = host.Do(func() error {
		handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer handle.Close()
		nic, err := handle.LinkByName("nic")
		if err != nil {
			return err
		}
		if err := handle.LinkSetHardwareAddr(nic, hardware); err != nil {
			return err
		}
		if err := handle.AddrAdd(nic, &netlink.Addr{IPNet: &net.IPNet{IP: address.Addr().AsSlice(), Mask: net.CIDRMask(address.Bits(), 32)}}); err != nil {
			return err
		}
		return handle.LinkSetUp(nic)
	})
	if err != nil {
		t.Fatal(err)
	}
}
