package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/vishvananda/netlink"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
)

// The test binary is also the CNI plugin that its tests run.
func TestMain(m *testing.M) {
	if os.Getenv("CNI_COMMAND") == "" {
		os.Exit(m.Run())
	}
	skel.PluginMainFuncs(skel.CNIFuncs{
		Add: func(a *skel.CmdArgs) error { return plugin(a, true) },
		Del: func(a *skel.CmdArgs) error { return plugin(a, false) },
	}, version.All, "of the tests")
}

// pluginConf is the plugin's configuration.
type pluginConf struct {
	types.PluginConf

	Log    string // a line a call goes there
	Refuse string // namespace whose pods are not connected
}

// called is such a line.
type called struct {
	Command string
	ID      string // of the container
	Args    string
	NetNS   string // the pod's
	In      string // the namespace that the plugin runs in
}

// plugin connects a pod by a pair of veths whose one end stays where the plugin runs, with the address that is free
// next, and tells what it was called with.
func plugin(a *skel.CmdArgs, add bool) error {
	var conf pluginConf
	if err := json.Unmarshal(a.StdinData, &conf); err != nil {
		return err
	}
	in, err := netns.Stat("/proc/self/ns/net")
	if err != nil {
		return err
	}
	line, err := json.Marshal(called{os.Getenv("CNI_COMMAND"), a.ContainerID, a.Args, a.Netns, in.String()})
	if err != nil {
		return err
	}
	log, err := os.OpenFile(conf.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := log.Write(append(line, '\n')); err != nil {
		return err
	}
	if !add {
		return nil
	}
	if conf.Refuse != "" && strings.Contains(a.Args, "K8S_POD_NAMESPACE="+conf.Refuse+";") {
		return errors.New("no address left")
	}
	pod, err := netns.Open(a.Netns)
	if err != nil {
		return err
	}
	cable := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "p" + a.ContainerID[:8]}, PeerName: a.IfName, PeerNamespace: netlink.NsFd(pod.FD())}
	if err := netlink.LinkAdd(cable); err != nil {
		return err
	}
	address, err := types.ParseCIDR(fmt.Sprintf("10.128.1.%d/24", cable.Index))
	if err != nil {
		return err
	}
	one := 1
	return types.PrintResult(&types100.Result{
		CNIVersion: conf.CNIVersion,
		Interfaces: []*types100.Interface{{Name: cable.Name}, {Name: a.IfName, Sandbox: a.Netns}},
		IPs:        []*types100.IPConfig{{Address: *address, Interface: &one}},
	}, conf.CNIVersion)
}

// scene is a fleet of two nodes with an API server that is not real, in namespaces of the test's own.
type scene struct {
	t      *testing.T
	client *fake.Clientset
	pods   watch.Interface
	events []watch.Event  // of pods, as far as anybody waited
	next   map[string]int // of events, by the name of who was waited for
	log    string         // of the plugin
	dir    string         // of the stand-ins
	start  func()
	stop   func() error
}

// newScene starts the fleet.
func newScene(t *testing.T, objects ...*core.Pod) *scene {
	t.Helper()
	kerneltest.AddBridge(t, "br0")
	kerneltest.SetUp(t, "br0")
	temp := t.TempDir()
	s := &scene{t: t, client: fake.NewClientset(), next: map[string]int{}, log: filepath.Join(temp, "calls"), dir: filepath.Join(temp, "s")}
	for _, p := range objects {
		s.create(p)
	}
	var err error
	if s.pods, err = s.client.CoreV1().Pods("").Watch(t.Context(), meta.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	conflist := fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "test", "plugins": [{"type": %q, "log": %q, "refuse": "refused"}]}`, filepath.Base(self), s.log)
	if err := os.WriteFile(filepath.Join(temp, "conflist"), []byte(conflist), 0o644); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Nodes: 2, Dir: s.dir, Bridge: "br0", IPv4: true, IPv6: true, Plugins: []string{filepath.Dir(self)},
		Conflist: filepath.Join(temp, "conflist"), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	s.start = func() {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- stand(ctx, o, s.client) }()
		s.stop = func() error { cancel(); return <-done }
	}
	s.start()
	return s
}

func (s *scene) create(p *core.Pod) {
	s.t.Helper()
	if _, err := s.client.CoreV1().Pods(p.Namespace).Create(s.t.Context(), p, meta.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// delete does what an API server does at first when a pod is deleted.
func (s *scene) delete(p *core.Pod, grace int64) {
	s.t.Helper()
	pods := s.client.CoreV1().Pods(p.Namespace)
	now, err := pods.Get(s.t.Context(), p.Name, meta.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	deleted := meta.Now()
	now.DeletionTimestamp, now.DeletionGracePeriodSeconds = &deleted, &grace
	if _, err := pods.Update(s.t.Context(), now, meta.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// await waits for a change of a pod after the one that it was last waited for.
func (s *scene) await(name string, want func(watch.Event, *core.Pod) bool) *core.Pod {
	s.t.Helper()
	for {
		if s.next[name] == len(s.events) {
			select {
			case <-s.t.Context().Done():
				s.t.Fatalf("pod %s: it did not happen", name)
			case e := <-s.pods.ResultChan():
				s.events = append(s.events, e)
			}
		}
		e := s.events[s.next[name]]
		s.next[name]++
		if p, ok := e.Object.(*core.Pod); ok && p.Name == name && want(e, p) {
			return p
		}
	}
}

func (s *scene) awaitPhase(name string, phase core.PodPhase) *core.Pod {
	s.t.Helper()
	return s.await(name, func(_ watch.Event, p *core.Pod) bool { return p.Status.Phase == phase })
}

func (s *scene) awaitGone(name string) {
	s.t.Helper()
	s.await(name, func(e watch.Event, _ *core.Pod) bool { return e.Type == watch.Deleted })
}

// calls are those of the plugin for a pod, in their order.
func (s *scene) calls(name string) []called {
	s.t.Helper()
	raw, err := os.ReadFile(s.log)
	if err != nil {
		s.t.Fatal(err)
	}
	var calls []called
	for line := range strings.Lines(string(raw)) {
		var c called
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			s.t.Fatal(err)
		}
		if strings.Contains(c.Args, "K8S_POD_NAME="+name+";") {
			calls = append(calls, c)
		}
	}
	return calls
}

// somePod is a pod on a node.
func somePod(namespace, name, node string, annotations ...string) *core.Pod {
	p := &core.Pod{
		ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: name, UID: apitypes.UID("uid-" + name), Annotations: map[string]string{}},
		Spec:       core.PodSpec{NodeName: node, RestartPolicy: core.RestartPolicyNever, Containers: []core.Container{{Name: "c", Image: "i"}}},
		Status:     core.PodStatus{Phase: core.PodPending},
	}
	for i := 0; i < len(annotations); i += 2 {
		p.Annotations[annotations[i]] = annotations[i+1]
	}
	return p
}

// A pod's network is made by the plugin in the node's namespace, told, and taken down again.
func TestLifeOfAPod(t *testing.T) {
	kerneltest.NetNS(t, func() {
		before := somePod("ns", "before", "standin1") // bound before the nodes were there
		s := newScene(t, before)
		s.awaitPhase("before", core.PodRunning)
		later, other := somePod("ns", "later", "standin2"), somePod("ns", "other", "node1")
		s.create(other)
		s.create(later)
		running := s.awaitPhase("later", core.PodRunning)
		if running.Status.HostIP != "10.98.0.12" || !strings.HasPrefix(running.Status.PodIP, "10.128.1.") {
			t.Errorf("addresses %s and %s", running.Status.HostIP, running.Status.PodIP)
		}
		calls := s.calls("later")
		node, err := netns.Stat(filepath.Join(s.dir, "standin2.netns"))
		if err != nil {
			t.Fatal(err)
		}
		if len(calls) != 1 || calls[0].Command != "ADD" || calls[0].In != node.String() || !strings.Contains(calls[0].Args, "K8S_POD_UID=uid-later") {
			t.Fatalf("called %+v in %s", calls, node)
		}
		if filepath.Dir(calls[0].NetNS) != filepath.Join(s.dir, "standin2/run/netns") {
			t.Errorf("network namespace at %s", calls[0].NetNS)
		}
		if _, err := netns.Stat(calls[0].NetNS); err != nil {
			t.Error(err)
		}

		s.delete(later, 30)
		s.awaitPhase("later", core.PodSucceeded)
		s.awaitGone("later")
		if calls := s.calls("later"); len(calls) != 2 || calls[1].Command != "DEL" || calls[1].NetNS != calls[0].NetNS || calls[1].ID != calls[0].ID {
			t.Errorf("called %+v", calls)
		}
		if _, err := os.Stat(calls[0].NetNS); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the pod's network namespace: %v", err)
		}
		if calls := s.calls("other"); len(calls) > 0 {
			t.Errorf("called for a pod of another node: %+v", calls)
		}
		s.endsClean()
	})
}

// endsClean stops the fleet and wants nothing left of it.
func (s *scene) endsClean() {
	s.t.Helper()
	if err := s.stop(); err != nil {
		s.t.Error(err)
	}
	// The server that is not real does not do this, but has seen that it was asked.
	actions := s.client.Actions()
	last, ok := actions[len(actions)-1].(clienttesting.DeleteCollectionAction)
	if !ok || last.GetResource().Resource != "nodes" || last.GetListRestrictions().Labels.String() != Label {
		s.t.Errorf("the last request: %+v", actions[len(actions)-1])
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) > 0 {
		s.t.Errorf("%v is left in %s (%v)", entries, s.dir, err)
	}
	mountinfo, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		s.t.Fatal(err)
	}
	defer mountinfo.Close()
	if mounts, err := mountsBelow(s.dir, mountinfo); err != nil || len(mounts) > 0 {
		s.t.Errorf("%v is mounted (%v)", mounts, err)
	}
	links, err := whole(netlink.LinkList)
	if err != nil {
		s.t.Fatal(err)
	}
	names := []string{}
	for _, l := range links {
		names = append(names, l.Attrs().Name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"br0", "lo"}) {
		s.t.Errorf("links %v", names)
	}
	addresses, err := netlink.AddrList(links[slices.IndexFunc(links, func(l netlink.Link) bool { return l.Attrs().Name == "br0" })], netlink.FAMILY_V4)
	if err != nil || len(addresses) > 0 {
		s.t.Errorf("addresses %v (%v)", addresses, err)
	}
}

// A job's pod ends by itself; a pod whose network cannot be made waits, is told about, and can still be deleted; one
// whose object is taken away leaves nothing.
func TestEndsOfPods(t *testing.T) {
	kerneltest.NetNS(t, func() {
		s := newScene(t)
		s.create(somePod("ns", "job", "standin1", RunsFor, "1ms"))
		s.create(somePod("ns", "bad-job", "standin1", RunsFor, "1ms", ExitCode, "3"))
		s.awaitPhase("job", core.PodSucceeded)
		failed := s.awaitPhase("bad-job", core.PodFailed)
		if code := failed.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 3 {
			t.Errorf("exit code %d", code)
		}
		s.delete(failed, 0)
		s.awaitGone("bad-job")

		events, err := s.client.CoreV1().Events("").Watch(t.Context(), meta.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		refused := somePod("refused", "refused", "standin1")
		s.create(refused)
		select {
		case e := <-events.ResultChan():
			if told := e.Object.(*core.Event); told.Reason != "FailedCreatePodSandBox" || !strings.Contains(told.Message, "no address left") {
				t.Errorf("told %+v", told)
			}
		case <-t.Context().Done():
			t.Fatal("nobody was told")
		}
		s.delete(refused, 30)
		s.awaitGone("refused")
		for i, c := range s.calls("refused") {
			if want := []string{"ADD", "DEL"}[i%2]; c.Command != want {
				t.Errorf("call %d: %s, want %s", i, c.Command, want)
			}
		}

		slow := somePod("ns", "slow", "standin2", StopsIn, "1h")
		s.create(slow)
		s.awaitPhase("slow", core.PodRunning)
		s.delete(slow, 0)
		if killed := s.awaitPhase("slow", core.PodFailed); killed.Status.ContainerStatuses[0].State.Terminated.ExitCode != 137 {
			t.Errorf("killed: %+v", killed.Status)
		}
		s.awaitGone("slow")

		taken := somePod("ns", "taken", "standin2")
		s.create(taken)
		s.awaitPhase("taken", core.PodRunning)
		if err := s.client.CoreV1().Pods("ns").Delete(t.Context(), "taken", meta.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		last := somePod("ns", "last", "standin2", RunsFor, "1ms")
		s.create(last)
		s.awaitPhase("last", core.PodSucceeded)
		s.endsClean()
	})
}

// What a run that was killed left is gone before the next one begins, and its pods get new networks.
func TestAfterAnUncleanEnd(t *testing.T) {
	kerneltest.NetNS(t, func() {
		s := newScene(t, somePod("ns", "pod", "standin1"))
		first := s.awaitPhase("pod", core.PodRunning)
		template, err := (&Options{}).conflistTemplate()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		// As a run that is killed leaves it.
		g := ground{dir: s.dir, bridge: "br0"}
		left := (&Options{Nodes: 1, Dir: s.dir, IPv4: true}).nodes()[0]
		if err := g.prepare(left.Gateways); err != nil {
			t.Fatal(err)
		}
		n, err := newNode(t.Context(), left, g, template, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(newNamespace(left.path(podNamespaces+"/cni-1")), n.close()); err != nil {
			t.Fatal(err)
		}
		s.start()
		second := s.awaitPhase("pod", core.PodRunning)
		if calls := s.calls("pod"); len(calls) != 2 || calls[0].ID == calls[1].ID || len(second.Status.PodIPs) != 1 || len(first.Status.PodIPs) != 1 {
			t.Errorf("called %+v; it had %v and has %v", calls, first.Status.PodIPs, second.Status.PodIPs)
		}
		s.endsClean()
	})
}
