package api

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"

	"railhead/hack/cluster/binaries"
	"railhead/internal/kernel/rtnl"
)

// versionsOfCNI are all that there are for lists of plugins.
func versionsOfCNI() []string { return []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} }

// inAttachNode runs fn on a node with rails and pools of 10.NET.0.0/16, with the
// shared API server and its controller.
func inAttachNode(t *testing.T, name string, net, addresses int, fn func(n *attachNode)) {
	t.Helper()
	t.Parallel()
	s := Shared(t)
	attachPrograms(t)
	s.InNetNS(t, func() {
		if err := makeDefaultRoute(); err != nil {
			t.Fatal(err)
		}
		fn(s.newAttachNode(t, name, net, addresses))
	})
}

// attachPrograms has everything that a node needs where there is a network to get it by.
func attachPrograms(t *testing.T) {
	t.Helper()
	if _, err := binaries.Ensure(t.Context(), t.Output(), binaries.Etcd, binaries.Kubernetes, binaries.CNI); err != nil {
		t.Fatal(err)
	}
	builtPrograms(t)
}

// TestAttachConformance has libcni, as container runtimes do, and cnitool make
// every call in every version to railhead-cni, whose agent attaches pods to the
// cluster's own network and eight rails.
func TestAttachConformance(t *testing.T) {
	inAttachNode(t, "conform", 211, 20, func(n *attachNode) {
		n.start(t)
		n.awaitNetwork(t, "1.1.0")
		n.awaitServed(t)
		n.warm(t)
		before := n.state(t)
		for _, v := range versionsOfCNI() {
			t.Run(v, func(t *testing.T) {
				n.setClusterNetwork(t, v)
				n.conform(t, n.runtime(t, n.awaitNetwork(t, v)))
				n.same(t, before)
			})
		}
		r := n.runtime(t, n.awaitNetwork(t, "1.1.0"))
		t.Run("GC", func(t *testing.T) { n.collects(t, r); n.same(t, before) })
		t.Run("cnitool", func(t *testing.T) { n.cnitool(t); n.same(t, before) })
	})
}

// warm attaches a pod, so that what the first one leaves for all is there: settings of the node.
func (n *attachNode) warm(t *testing.T) {
	t.Helper()
	r := n.runtime(t, n.awaitNetwork(t, "1.1.0"))
	s := n.mustSandbox(t, n.createPod(t, "warm"), 0)
	Eventually(t, func() string { // pools get ready, and the agent reads all that there is
		if _, err := r.add(t.Context(), s); err != nil {
			return "the first pod attached: " + err.Error()
		}
		return ""
	})
	if err := r.del(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	n.deletePod(t, s.pod)
}

// same wants the node to be as it was.
func (n *attachNode) same(t *testing.T, before nodeState) {
	t.Helper()
	if diff := cmp.Diff(before, n.state(t)); diff != "" {
		t.Errorf("what is left on the node (-before +after):\n%s", diff)
	}
}

// conform makes every call in one version.
func (n *attachNode) conform(t *testing.T, r *containerRuntime) {
	t.Helper()
	name := "conform-" + strings.ReplaceAll(r.list.CNIVersion, ".", "-")
	s := n.mustSandbox(t, n.createPod(t, name), 0)
	empty, _, err := inSandbox(s.path)
	if err != nil {
		t.Fatal(err)
	}
	n.checkVersion(t, r)
	if err := r.GetStatusNetworkList(t.Context(), r.list); err != nil {
		t.Error("STATUS:", err)
	}
	result, err := r.add(t.Context(), s)
	if err != nil {
		t.Fatal("ADD:", err)
	}
	n.isAttached(t, s, result)
	hasCheck := r.list.CNIVersion >= "0.4.0"
	if err := r.check(t.Context(), s); (err == nil) != hasCheck {
		t.Error("CHECK:", err)
	}
	n.addAgain(t, r, s, result)
	if hasCheck {
		n.breakRail(t, r, s)
	}
	for range 2 {
		if err := r.del(t.Context(), s); err != nil {
			t.Error("DEL:", err)
		}
	}
	after, _, err := inSandbox(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(empty, after); diff != "" {
		t.Errorf("what is left in the pod (-before +after):\n%s", diff)
	}
	n.deletePod(t, s.pod)
}

// checkVersion wants VERSION to name all versions.
func (n *attachNode) checkVersion(t *testing.T, r *containerRuntime) {
	t.Helper()
	info, err := r.GetVersionInfo(t.Context(), r.list.Plugins[0].Network.Type)
	if err != nil {
		t.Fatal("VERSION:", err)
	}
	if diff := cmp.Diff(versionsOfCNI(), info.SupportedVersions()); diff != "" {
		t.Errorf("VERSION (-want +got):\n%s", diff)
	}
}

// isAttached wants a pod to have its rails, and what the runtime was told.
func (n *attachNode) isAttached(t *testing.T, s *podSandbox, result *types100.Result) {
	t.Helper()
	all, found, err := inSandbox(s.path)
	if err != nil {
		t.Fatal(err)
	}
	rails, err := n.mustRails(found)
	if err == nil {
		err = n.hasRails(all, rails)
	}
	if err != nil {
		t.Error(err)
	}
	if told := []netip.Addr{netip.MustParseAddr(result.IPs[0].Address.IP.String())}; !slices.Equal(told, found["eth0"]) {
		t.Errorf("the runtime was told %v, eth0 has %v", told, found["eth0"])
	}
	if !slices.ContainsFunc(result.Interfaces, func(i *types100.Interface) bool { return i.Name == "eth0" && i.Sandbox == s.path }) {
		t.Errorf("no eth0 of %s in the result: %+v", s.path, result.Interfaces)
	}
}

// addAgain makes the call once more, as a runtime that was started again may: it is told the same.
func (n *attachNode) addAgain(t *testing.T, r *containerRuntime, s *podSandbox, want *types100.Result) {
	t.Helper()
	got, err := r.add(t.Context(), s)
	if err != nil {
		t.Error("ADD once more:", err)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ADD once more (-first +second):\n%s", diff)
	}
}

// breakRail deletes a rail by hand, which CHECK has to find.
func (n *attachNode) breakRail(t *testing.T, r *containerRuntime, s *podSandbox) {
	t.Helper()
	pod, err := os.Open(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer pod.Close()
	c := kernelIn(t, int(pod.Fd()))
	link, err := c.LinkByName("net5")
	if err == nil {
		err = errors.Join(c.Do(rtnl.LinkDelete{Index: link.Index})...)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := r.check(t.Context(), s); err == nil || !strings.Contains(err.Error(), "net5") {
		t.Errorf("CHECK of a pod without net5: %v", err)
	}
}
