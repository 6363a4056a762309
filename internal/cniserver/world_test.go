package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"

	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/ipam/holder"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

const (
	boot  = "5a8cdb7c-boot"
	rails = 8
)

// world is a node with eight rails, whose gateways are in a fabric of their own,
// and a server on it.
type world struct {
	t         *testing.T
	node      *rtnl.Client
	fabric    *os.File
	disk      *memoryDisk
	cluster   *fakeCluster
	addresses *fakeAddresses
	delegate  *fakeDelegate
	attacher  *attach.Attacher
	server    *Server
	log       *logged // by the server
	stop      func()
	extend    func(*Config) // what a test wants otherwise
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, disk: &memoryDisk{files: map[string][]byte{}}, cluster: newCluster(t), fabric: kerneltest.NewNetNS(t)}
	w.addresses = &fakeAddresses{cluster: w.cluster, assigned: map[holder.Key]holder.Assignment{}}
	w.delegate = &fakeDelegate{t: t}
	w.node = dialIn(t, 0)
	quiet(t, "/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
	w.must(w.node, rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 1, Prefix: netip.MustParsePrefix("10.1.20.4/32")}})
	fabric := dialIn(t, int(w.fabric.Fd()))
	for n := range rails {
		w.must(w.node, rtnl.LinkAdd{
			Name: rail(n), Kind: "veth", Index: 110 + n, Up: true,
			Peer: rtnl.VethPeer{Name: fmt.Sprintf("sw%d", n), Index: 210 + n, NetNS: int(w.fabric.Fd())},
		})
		w.must(fabric, rtnl.LinkSet{Index: 210 + n, Up: new(true)},
			rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 210 + n, Prefix: netip.MustParsePrefix(fmt.Sprintf("172.16.%d.254/24", 11+n))}})
	}
	w.awaitUp()
	var err error
	if w.attacher, err = attach.New(attach.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.attacher.Close() })
	w.start()
	return w
}

// logged is a log of one object a line.
type logged struct {
	mu   sync.Mutex
	text []byte
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, line...)
	return len(line), nil
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

func rail(n int) string { return fmt.Sprintf("enp%ds0f0np0", 11+n) }

// start starts a server as an agent that starts on what is there.
func (w *world) start() {
	w.t.Helper()
	store, err := record.Open(w.disk, record.File)
	if err != nil {
		w.t.Fatal(err)
	}
	w.log = &logged{}
	config := Config{
		NodeName: "node1", Logger: slog.New(slog.NewJSONHandler(w.log, nil)), Addresses: w.addresses, Cluster: w.cluster, Attacher: w.attacher, Records: store, Delegate: w.delegate,
		BootID: boot, ClusterNetwork: func(file, name string) (*libcni.NetworkConfigList, error) {
			if w.delegate.missing {
				return nil, fmt.Errorf("%s: %w", file, fs.ErrNotExist)
			}
			return libcni.NetworkConfFromBytes([]byte(`{"cniVersion":"1.0.0","name":"k8s-pod-network","plugins":[{"type":"calico"},{"type":"portmap","capabilities":{"portMappings":true}}]}`))
		},
	}
	if w.extend != nil {
		w.extend(&config)
	}
	if w.server, err = New(config); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	server := w.server
	go func() { ended <- server.Run(ctx) }()
	once := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			w.t.Errorf("Run: %v", err)
		}
	})
	w.stop = once
	w.t.Cleanup(once)
	<-server.started
}

func (w *world) must(c *rtnl.Client, requests ...rtnl.Request) {
	w.t.Helper()
	if err := errors.Join(c.Do(requests...)...); err != nil {
		w.t.Fatal(err)
	}
}

func dialIn(tb testing.TB, ns int) *rtnl.Client {
	tb.Helper()
	c, err := rtnl.Dial(&rtnl.Config{NetNS: ns})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// quiet keeps addresses and routes away that come and go in the background.
func quiet(tb testing.TB, path, value string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		tb.Error(err)
	}
}

// awaitUp waits until the kernel has noticed that the rails have a carrier.
func (w *world) awaitUp() {
	w.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(2 * time.Minute)
	for n := 0; n < rails; {
		link, err := w.node.LinkByName(rail(n))
		if err != nil {
			w.t.Fatal(err)
		}
		if link.OperState == "up" {
			n++
			continue
		}
		select {
		case <-tick.C:
		case <-late:
			w.t.Fatalf("%s is not up: %+v", rail(n), link)
		}
	}
}

// box is a pod's network namespace.
type box struct {
	id, path string
	pod      string
	file     *os.File
	client   *rtnl.Client
}

func (w *world) sandbox(id, pod string) *box {
	w.t.Helper()
	s := &box{id: id, pod: pod, file: kerneltest.NewNetNS(w.t)}
	s.path = fmt.Sprintf("/proc/self/fd/%d", s.file.Fd())
	s.client = dialIn(w.t, int(s.file.Fd()))
	w.must(s.client, rtnl.LinkSet{Index: 1, Up: new(true)})
	return s
}

// end lets the namespace go.
func (s *box) end() { _, _ = s.client.Close(), s.file.Close() }

// request is a call of the runtime for a sandbox.
func (s *box) request(command string) cnicall.Request {
	return cnicall.Request{
		Command: command, ContainerID: s.id, NetNS: s.path, IfName: "eth0", Plugin: ownPlugin,
		Args:   fmt.Sprintf("IgnoreUnknown=1;K8S_POD_NAMESPACE=ai;K8S_POD_NAME=%s;K8S_POD_UID=uid-%s;K8S_POD_INFRA_CONTAINER_ID=%s", s.pod, s.pod, s.id),
		Config: json.RawMessage(`{"cniVersion":"1.0.0","name":"railhead","type":"railhead-cni","clusterNetwork":{"file":"10-calico.conflist","name":"k8s-pod-network"}}`),
	}
}

func (w *world) call(s *box, command string) *cnicall.Error {
	w.t.Helper()
	return w.server.Handle(w.t.Context(), s.request(command)).Error
}

func (w *world) ok(s *box, command string) json.RawMessage {
	w.t.Helper()
	answer := w.server.Handle(w.t.Context(), s.request(command))
	if answer.Error != nil {
		w.t.Fatalf("%s %s: %d %v", command, s.id, answer.Error.Code, answer.Error)
	}
	return answer.Output
}

// refused makes a call that has to fail with a code and words.
func (w *world) refused(s *box, command string, code uint, words ...string) {
	w.t.Helper()
	w.fails(s.request(command), code, words...)
}

// fails is refused of any call.
func (w *world) fails(r cnicall.Request, code uint, words ...string) {
	w.t.Helper()
	err := w.server.Handle(w.t.Context(), r).Error
	if err == nil {
		w.t.Fatalf("%s %s: no error, want %d %q", r.Command, r.ContainerID, code, words)
	}
	if err.Code != code {
		w.t.Errorf("%s %s: code %d of %v, want %d", r.Command, r.ContainerID, err.Code, err, code)
	}
	for _, word := range words {
		if !strings.Contains(err.Msg, word) {
			w.t.Errorf("%s %s: %v\nwant %q in it", r.Command, r.ContainerID, err, word)
		}
	}
}

// snapshot is all of node and pod, for comparing.
func (w *world) snapshot(s *box) map[string]any {
	w.t.Helper()
	all := map[string]any{}
	for name, c := range map[string]*rtnl.Client{"node": w.node, "pod": s.client} {
		links, err1 := c.Links()
		addresses, err2 := c.Addresses()
		routes, err3 := c.Routes()
		rules, err4 := c.Rules()
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			w.t.Fatal(err)
		}
		all[name] = map[string]any{"links": links, "addresses": addresses, "routes": routes, "rules": rules}
	}
	return all
}

// attachedNow is a snapshot without what the kernel makes and changes in the background,
// up to seconds after a link is up: states of links, link-local addresses and their routes.
func (w *world) attachedNow(s *box) map[string]any {
	w.t.Helper()
	all := w.snapshot(s)
	for _, at := range all {
		at := at.(map[string]any)
		links := at["links"].([]rtnl.Link)
		for n := range links {
			links[n].Running, links[n].OperState = false, ""
		}
		at["addresses"] = slices.DeleteFunc(at["addresses"].([]rtnl.Address), func(a rtnl.Address) bool { return isOfLink(a.Prefix.Addr()) })
		at["routes"] = slices.DeleteFunc(at["routes"].([]rtnl.Route), func(r rtnl.Route) bool { return isOfLink(r.Dst.Addr()) })
	}
	return all
}

// isOfLink says whether an address is one that the kernel has each link with IPv6 have.
func isOfLink(a netip.Addr) bool {
	return a.Is6() && (a.IsLinkLocalUnicast() || a.IsMulticast())
}

// rest waits for what goes on behind answers.
func (w *world) rest() { w.server.background.wait() }

// fabricDown takes a gateway away, and fabricUp brings it back.
func (w *world) fabricDown(n int) {
	w.must(dialIn(w.t, int(w.fabric.Fd())), rtnl.AddressDelete{Address: gatewayOf(n)})
}

func (w *world) fabricUp(n int) {
	w.must(dialIn(w.t, int(w.fabric.Fd())), rtnl.AddressAdd{Address: gatewayOf(n)})
}

func gatewayOf(n int) rtnl.Address {
	return rtnl.Address{LinkIndex: 210 + n, Prefix: netip.MustParsePrefix(fmt.Sprintf("172.16.%d.254/24", 11+n))}
}
