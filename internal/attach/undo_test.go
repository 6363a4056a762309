package attach

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// half applies a plan up to one part and stops there as a process does that is killed.
func (w *world) half(plan *Plan, parts int) (done bool) {
	w.tb.Helper()
	a := w.a
	a.refuse = func(string) error {
		if parts--; parts < 0 {
			return errRefused
		}
		return nil
	}
	defer func() { a.refuse = nil }()
	half, err := a.open(plan)
	if err != nil {
		w.tb.Fatal(err)
	}
	defer half.close()
	err = half.ns.Do(func() error {
		for _, s := range half.stages() {
			if err := s.do(s.name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errRefused) {
		w.tb.Fatal(err)
	}
	return err == nil
}

// TestUndoHalf has another run of the agent undo what an earlier one had begun.
func TestUndoHalf(t *testing.T) {
	t.Parallel()
	for name, shape := range shapes() {
		if name == "ipv6" || name == "one /16" {
			continue // dual has their parts
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.rails = 2
				pod := shape(w)
				before := w.snapshot()
				plan := w.plan(pod)
				kept := fromDisk(t, plan)
				var later *Attacher
				w.inside(w.home, func() { later = w.attacher() })
				later.mark, later.unmark = w.a.mark, w.a.unmark
				defer func() { _ = later.Close() }()
				for parts := 0; ; parts += 3 {
					done := w.half(plan, parts)
					if err := later.Undo(t.Context(), kept, nil); err != nil {
						t.Errorf("after %d parts: %v", parts, err)
					}
					if w.same("undone", before); t.Failed() {
						t.Fatalf("after %d parts", parts)
					}
					if done {
						return
					}
				}
			})
		})
	}
}

// TestUndoOther holds that a plan's undoing touches no newer pod: not in the
// namespace that is now at its path, and not on the node where the newer pod's
// link has the old one's name.
func TestUndoOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		path := filepath.Join(dir, "netns")
		mount := func(file *os.File) {
			if err := unix.Mount(pathOf(file), path, "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		mount(w.ns)
		w.calico()
		pod := w.eightRails("46")
		pod.NetNS = path
		old := w.plan(pod)
		if _, err := w.a.Apply(t.Context(), old); err != nil {
			t.Fatal(err)
		}

		// The pod ends, and another with its name and addresses begins.
		w.must(w.node, rtnl.LinkDelete{Name: podPeer})
		w.must(w.pod, rtnl.LinkDeleteGroup{Group: Group})
		if err := unix.Unmount(path, 0); err != nil {
			t.Fatal(err)
		}
		w.ns = kerneltest.NewNetNS(t)
		w.pod = dial(t, w.ns)
		w.inside(w.ns, w.quiet)
		mount(w.ns)
		w.podPeer = 301
		w.calico()
		newer := w.plan(pod)
		if _, err := w.a.Apply(t.Context(), newer); err != nil {
			t.Fatal(err)
		}
		before := w.snapshot()
		if err := w.a.Undo(t.Context(), old, nil); err != nil {
			t.Error(err)
		}
		w.same("old pod undone", before)
		if err := w.a.Check(t.Context(), newer); err != nil {
			t.Error(err)
		}
		if _, err := w.a.Apply(t.Context(), old); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("old plan applied: %v, want that its namespace is not there", err)
		}
		w.same("old plan applied", before)
		if err := unix.Unmount(path, 0); err != nil {
			t.Fatal(err)
		}
		if err := w.a.Undo(t.Context(), newer, nil); err != nil { // now there is no namespace at all
			t.Error(err)
		}
		if rules := w.hostRules(); len(rules) != 0 {
			t.Errorf("rules %v: want none after the last pod", rules)
		}
	})
}

// hostRules are the node's rules of ours.
func (w *world) hostRules() []rtnl.Rule {
	w.tb.Helper()
	rules, err := w.node.Rules()
	if err != nil {
		w.tb.Fatal(err)
	}
	return slices.DeleteFunc(rules, func(r rtnl.Rule) bool { return r.Protocol != hostRuleProtocol })
}

// TestHostRules holds that the node's rule stays for another pod, goes with
// the last, and stays if somebody else made it.
func TestHostRules(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		w.rails = 1
		one := w.eightRails("4")
		other := newPod(t, w)
		two := other.eightRails("4")
		two.ContainerID = "fedcba9876543210"
		two.Interfaces[1].Addresses = []netip.Prefix{prefix("172.16.11.20/24")}
		before := w.snapshot()
		planOne, planTwo := w.plan(one), w.plan(two)
		for _, plan := range []*Plan{planOne, planTwo} {
			if _, err := w.a.Apply(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
		}
		for n, plan := range []*Plan{planOne, planTwo} {
			if rules := w.hostRules(); len(rules) != 1 {
				t.Errorf("%d pods gone: rules %v, want one", n, rules)
			}
			if err := w.a.Undo(t.Context(), plan, nil); err != nil {
				t.Error(err)
			}
		}
		w.same("both gone", before)
		if len(w.a.users) != 0 {
			t.Errorf("users %v: want none", w.a.users)
		}

		w.must(w.node, rtnl.RuleAdd{Rule: rtnl.Rule{Family: "inet", Priority: 1000, Table: 500}})
		before = w.snapshot()
		if _, err := w.a.Apply(t.Context(), planOne); err != nil {
			t.Fatal(err)
		}
		if err := w.a.Undo(t.Context(), planOne, nil); err != nil {
			t.Error(err)
		}
		w.same("the rule of somebody else", before)
	})
}

// TestReplacedHostRoute holds that a route that an earlier pod left comes back
// if the pod in its place is not attached.
func TestReplacedHostRoute(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		w.rails = 1
		w.must(w.node, rtnl.RouteAdd{Route: rtnl.Route{Table: 500, Dst: prefix("172.16.11.10/32"), LinkIndex: 100}},
			rtnl.RouteAdd{Route: rtnl.Route{Table: 500, Dst: prefix("fd00:16:11::10/128"), LinkIndex: 100}})
		for _, family := range []string{"inet", "inet6"} {
			w.must(w.node, rtnl.RuleAdd{Rule: rtnl.Rule{Family: family, Priority: 1000, Table: 500, Protocol: hostRuleProtocol}})
		}
		before := w.snapshot()
		plan := w.plan(w.eightRails("46"))
		parts := len(plan.Routing.Host.Rules) + len(plan.Routing.Host.Routes)
		w.a.refuse = func(stage string) error {
			if stage != "node" {
				return nil
			}
			if parts--; parts < 0 {
				return errRefused
			}
			return nil
		}
		if _, err := w.a.Apply(t.Context(), plan); !errors.Is(err, errRefused) {
			t.Fatalf("apply: %v, want %v", err, errRefused)
		}
		w.same("refused", before)
	})
}

// TestReusedNamespace holds that a namespace is another one that has path and
// number of the one that was planned for: the kernel gives numbers again.
func TestReusedNamespace(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.calico()
		w.rails = 2
		plan := w.plan(w.eightRails("46"))
		if plan.Cookie == 0 {
			t.Skip("this kernel has no SO_NETNS_COOKIE, which Linux 5.14 brought")
		}
		if other := newPod(t, w); other.plan(other.eightRails("4")).Cookie == plan.Cookie {
			t.Errorf("two namespaces have cookie %d", plan.Cookie)
		}
		if _, err := w.a.Apply(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		before := w.snapshot()
		old := *plan
		old.Cookie--
		old.Routing.Host = routing.Namespace{} // the node's knows pods by numbers of links
		if err := w.a.Undo(t.Context(), &old, nil); err != nil {
			t.Error(err)
		}
		if _, err := w.a.Apply(t.Context(), &old); !errors.Is(err, ErrOtherNamespace) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("apply: %v, want %v", err, ErrOtherNamespace)
		}
		if err := w.a.Check(t.Context(), &old); !errors.Is(err, ErrOtherNamespace) {
			t.Errorf("check: %v, want %v", err, ErrOtherNamespace)
		}
		w.same("the newer pod", before)
		if err := w.a.Check(t.Context(), plan); err != nil {
			t.Error(err)
		}
	})
}

// TestSharedLinks makes a bond and a VLAN on it for two pods, and removes them
// with the last, also after any part of that failed.
func TestSharedLinks(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		w.needsKind("bond")
		w.needsKind("vlan")
		w.rails = 2
		shared := func(i *Interface) {
			i.Link.Parent = Parent{
				Name: "bond0.77", Members: []string{parentName(6), parentName(7)}, VLANID: 77,
				Bond: &Bond{Name: "bond0", Mode: "1", Options: map[string]string{"miimon": "100"}},
			}
			i.Coordinator = nil
		}
		one, two := w.eightRails("4"), newPod(t, w).eightRails("4")
		one.Peer, two.Peer = routing.Peer{}, routing.Peer{}
		one.Interfaces, two.Interfaces = one.Interfaces[1:], two.Interfaces[1:]
		two.ContainerID = "fedcba9876543210"
		for n := range 2 {
			shared(&one.Interfaces[n])
		}
		shared(&two.Interfaces[0])
		two.Interfaces[0].Addresses = []netip.Prefix{prefix("172.16.11.20/24")}
		before := w.snapshot()
		w.undoFails(one)
		planOne := w.plan(one)
		for parts := 0; !w.refused(planOne, parts); parts++ {
			if w.same("refused", before); t.Failed() {
				t.Fatalf("part %d", parts)
			}
		}
		if err := w.a.Check(t.Context(), planOne); err != nil {
			t.Error(err)
		}
		with := w.snapshot()
		planTwo := w.plan(two)
		for parts := 0; !w.refused(planTwo, parts); parts++ {
			if w.same("refused", with); t.Failed() {
				t.Fatalf("part %d", parts)
			}
		}
		if err := w.a.Undo(t.Context(), planOne, nil); err != nil {
			t.Error(err)
		}
		if err := w.a.Check(t.Context(), planTwo); err != nil {
			t.Errorf("the other pod: %v", err)
		}
		later := w.a
		w.inside(w.home, func() { later = w.attacher() })
		defer func() { _ = later.Close() }()
		inUse := func(name string) bool { return name == "bond0" }
		if err := later.Undo(t.Context(), planTwo, inUse); err != nil {
			t.Error(err)
		}
		w.gone(w.node, "bond0.77")
		w.link(w.node, "bond0")
		if err := later.Undo(t.Context(), planOne, nil); err != nil {
			t.Error(err)
		}
		w.gone(w.node, "bond0")

		w.must(w.node, rtnl.LinkAdd{Name: "bond0", Kind: "bond", BondMode: "802.3ad"})
		if _, err := w.a.Plan(t.Context(), one); err == nil || !strings.Contains(err.Error(), `parent "bond0": the node has a link of that name with bond mode "802.3ad": want "active-backup"`) {
			t.Errorf("another bond: %v", err)
		}
	})
}

// refused applies a plan of which one part fails; true if it has not that many.
func (w *world) refused(plan *Plan, part int) bool {
	w.tb.Helper()
	w.a.refuse = func(string) error {
		if part--; part == -1 {
			return errRefused
		}
		return nil
	}
	defer func() { w.a.refuse = nil }()
	_, err := w.a.Apply(w.tb.Context(), plan)
	if err != nil && !errors.Is(err, errRefused) {
		w.tb.Fatal(err)
	}
	return err == nil
}

// TestKinds attaches links that only some kernels have.
func TestKinds(t *testing.T) {
	t.Parallel()
	for kind, modes := range map[Kind][]string{IPVLAN: {"l2", "l3", "l3s"}, VLAN: {""}} {
		for _, mode := range modes {
			t.Run(strings.TrimSpace(string(kind)+" "+mode), func(t *testing.T) {
				t.Parallel()
				kerneltest.NetNS(t, func() {
					w := newWorld(t)
					w.needsKind(string(kind))
					w.calico()
					w.rails = 3
					pod := w.eightRails("46")
					for n := 1; n < len(pod.Interfaces); n++ {
						pod.Interfaces[n].Link.Kind, pod.Interfaces[n].Link.Mode = kind, mode
						if kind == VLAN {
							pod.Interfaces[n].Link.VLANID = 100 + n
						}
					}
					before := w.snapshot()
					plan := w.plan(pod)
					w.thereAndBack(plan, before)
				})
			})
		}
	}
}
