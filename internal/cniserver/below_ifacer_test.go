package cniserver

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/containernetworking/cni/libcni"
	cnitypes "github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// bonded is a network as it is made of a SpiderMultusConfig: the VLAN 100 on a bond
// of the last two rails.
const bonded = `{"cniVersion":"1.0.0","name":"gpu7","plugins":[
	{"type":"ifacer","interfaces":["enp17s0f0np0","enp18s0f0np0"],"vlanID":100,"bond":{"name":"bond0","mode":1,"options":"miimon=100"}},
	{"type":"macvlan","master":"bond0.100","mode":"bridge","mtu":0,"ipam":{"type":"spiderpool","default_ipv4_ippool":["gpu7"]}},
	{"type":"coordinator"}]}`

// newBonded is a world with VLANs and bonds, whose gateways of the last two rails
// are in VLAN 100, and pods in it.
func newBonded(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.needsKind(rtnl.LinkAdd{Name: "probe0", Kind: "bond"})
	w.needsKind(rtnl.LinkAdd{Name: "probe0", Kind: "vlan", Parent: 110, VLANID: 4000})
	fabric := dialIn(t, int(w.fabric.Fd()))
	for n := 6; n < rails; n++ {
		w.must(fabric, rtnl.LinkAdd{Name: fmt.Sprintf("sw%d.100", n), Kind: "vlan", Parent: 210 + n, VLANID: 100, Index: 310 + n, Up: true})
	}
	gateway := gatewayOf(6)
	w.must(fabric, rtnl.AddressDelete{Address: gateway})
	gateway.LinkIndex = 316
	w.must(fabric, rtnl.AddressAdd{Address: gateway})
	w.cluster.nad("gpu7", bonded)
	for _, name := range []string{"one", "two", "own"} {
		w.cluster.pod(name, map[string]string{cniv1.AnnotationNetworks: "ai/gpu7"})
	}
	return w
}

// needsKind skips a test where the kernel has no links of a kind.
func (w *world) needsKind(add rtnl.LinkAdd) {
	w.t.Helper()
	err := errors.Join(w.node.Do(add)...)
	if errors.Is(err, rtnl.ErrNotSupported) {
		w.t.Skipf("this kernel has no %s: %v", add.Kind, err)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.must(w.node, rtnl.LinkDelete{Name: add.Name})
}

// parents wants links on the node to be there, or not.
func (w *world) parents(when string, there bool, names ...string) {
	w.t.Helper()
	for _, name := range names {
		l, err := w.node.LinkByName(name)
		if there && (err != nil || l.Group != attach.SharedGroup || !l.Up) || !there && !errors.Is(err, fs.ErrNotExist) {
			w.t.Errorf("%s: link %s: %+v, %v: want it there: %t", when, name, l, err, there)
		}
	}
}

// same wants node and pod to be as before, but for carriers, which the kernel
// notices when it gets round to it.
func (w *world) same(before map[string]any, s *box) {
	w.t.Helper()
	w.awaitUp()
	if diff := cmp.Diff(before, w.snapshot(s), comparable()...); diff != "" {
		w.t.Errorf("left behind (-before +after):\n%s", diff)
	}
	w.checkNothingLeft()
}

// TestIfacerShared has two pods of Multus and one of ours on one VLAN, which goes
// with the last of them, whichever that is.
func TestIfacerShared(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"box1 box2 box3", "box3 box2 box1", "box2 box3 box1"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newBonded(t)
				one, two := w.multus(w.sandbox("box1", "one"), bonded), w.multus(w.sandbox("box2", "two"), bonded)
				own := w.sandbox("box3", "own")
				before := w.snapshot(one.s)
				w.parents("at first", false, "bond0", "bond0.100")
				for _, m := range []*multus{one, two} {
					result, err := m.add()
					if err != nil {
						t.Fatal(err)
					}
					if r, err := types100.NewResultFromResult(result); err != nil || len(r.IPs) != 1 {
						t.Errorf("%v, %v: want an address", result, err)
					}
				}
				w.ok(own, cnicall.Add)
				w.stop()
				w.start() // nothing is lost
				if found := w.found(); len(found) > 0 {
					t.Errorf("repairs %q", found)
				}
				if err := errors.Join(one.check(), two.check()); err != nil {
					t.Error(err)
				}
				w.ok(own, cnicall.Check)
				dels := map[string]func() error{"box1": one.del, "box2": two.del, "box3": func() error {
					if err := w.call(own, cnicall.Del); err != nil {
						return err
					}
					return nil
				}}
				w.parents("with all", true, "bond0", "bond0.100")
				for i, id := range strings.Fields(order) {
					if err := errors.Join(dels[id](), dels[id]()); err != nil {
						t.Error(err)
					}
					w.parents("after DEL of "+id, i < 2, "bond0", "bond0.100")
				}
				w.same(before, one.s)
				want := []string{
					"ADD ifacer", "ADD macvlan", "ADD spiderpool", "ADD coordinator",
					"CHECK ifacer", "CHECK macvlan", "CHECK spiderpool", "CHECK coordinator",
					"DEL coordinator", "DEL macvlan", "DEL spiderpool", "DEL ifacer",
					"DEL coordinator", "DEL macvlan", "DEL spiderpool", "DEL ifacer",
				}
				if diff := cmp.Diff(want, one.said); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestIfacerFailures fails the chain in turn: after DEL, nothing of it is there, and
// all that was there before.
func TestIfacerFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, words string
		fail        string
		chain       func(string) string
		spoil       func(w *world)
		mend        func(w *world)
	}{
		{name: "macvlan", fail: "ADD macvlan", words: "ADD macvlan was refused"},
		{name: "coordinator", fail: "ADD coordinator", words: "ADD coordinator was refused"},
		{
			name: "bond of another", words: `parent "bond0": the node has a link of that name with bond mode "802.3ad": want "active-backup"`,
			spoil: func(w *world) {
				w.must(w.node, rtnl.LinkAdd{Name: "bond0", Kind: "bond", BondMode: "802.3ad", Index: 400})
			},
		},
		{
			name: "VLAN of another", words: `parent "bond0.100": the node has a link of that name with kind "veth"`,
			spoil: func(w *world) {
				w.must(w.node, rtnl.LinkAdd{Name: "bond0.100", Kind: "veth", Index: 400, Peer: rtnl.VethPeer{Name: "other", Index: 401}})
			},
		},
		{
			name: "option", words: "nosuch",
			chain: func(text string) string { return strings.Replace(text, "miimon=100", "nosuch=1", 1) },
		},
		{
			name: "disk", words: "no space left",
			spoil: func(w *world) { w.disk.fill(syscall.ENOSPC) },
			mend:  func(w *world) { w.disk.fill(nil) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newBonded(t)
				chain := bonded
				if tt.chain != nil {
					chain = tt.chain(chain)
				}
				m := w.multus(w.sandbox("box1", "one"), chain)
				if tt.spoil != nil {
					tt.spoil(w)
				}
				m.fail = tt.fail
				before := w.snapshot(m.s)
				if _, err := m.add(); err == nil || !strings.Contains(err.Error(), tt.words) {
					t.Errorf("%v, want %q", err, tt.words)
				}
				if tt.mend != nil {
					tt.mend(w)
				}
				if tt.fail == "" {
					w.same(before, m.s) // without DEL
				}
				if err := m.del(); err != nil {
					t.Error(err)
				}
				w.same(before, m.s)
			})
		})
	}
}

// TestIfacerOfOthers stands on what somebody else made, which stays.
func TestIfacerOfOthers(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newBonded(t)
		s := w.sandbox("box1", "one")
		w.must(w.node, rtnl.LinkAdd{Name: "enp17s0f0np0.9", Kind: "vlan", Parent: 116, VLANID: 9, Index: 400, Up: true})
		const config = `{"cniVersion":"1.0.0","name":"gpu7","type":"ifacer","interfaces":["enp17s0f0np0"],"vlanID":9}`
		w.below(s, cnicall.Add, pluginIfacer, "net1", config)
		w.below(s, cnicall.Check, pluginIfacer, "net1", config)
		w.below(s, cnicall.Del, pluginIfacer, "net1", config)
		if l, err := w.node.LinkByName("enp17s0f0np0.9"); err != nil || l.Index != 400 || l.Group != 0 {
			t.Errorf("%+v, %v: want it as it was made", l, err)
		}
		w.checkNothingLeft()
	})
}

// ifacerConfig is what the first plugin of a chain is given.
func ifacerConfig(vlan int) string {
	return fmt.Sprintf(`{"cniVersion":"1.0.0","name":"gpu7","type":"ifacer","interfaces":["enp17s0f0np0","enp18s0f0np0"],"vlanID":%d,"bond":{"name":"bond0","mode":1}}`, vlan)
}

// TestIfacerAgain asks in every order: ADD again, of something else, after somebody
// took a link away; CHECK; DEL again, of what never was, and late.
func TestIfacerAgain(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newBonded(t)
		s := w.sandbox("box1", "one")
		before := w.snapshot(s)
		w.below(s, cnicall.Del, pluginIfacer, "net1", ifacerConfig(100))
		w.fails(s.belowRequest(cnicall.Check, pluginIfacer, "net1", ifacerConfig(100)), cnicall.CodeContainer, "interface net1: plugin ifacer: nothing was made for it")
		w.below(s, cnicall.Add, pluginIfacer, "net1", ifacerConfig(100))
		w.below(s, cnicall.Add, pluginIfacer, "net1", ifacerConfig(100))
		w.below(s, cnicall.Check, pluginIfacer, "net1", ifacerConfig(100))
		w.must(w.node, rtnl.LinkDelete{Name: "bond0.100"})
		w.fails(s.belowRequest(cnicall.Check, pluginIfacer, "net1", ifacerConfig(100)), cnicall.CodeInternal, `parent "bond0.100": it is not there`)
		w.below(s, cnicall.Add, pluginIfacer, "net1", ifacerConfig(100))
		w.below(s, cnicall.Check, pluginIfacer, "net1", ifacerConfig(100))
		w.fails(s.belowRequest(cnicall.Add, pluginIfacer, "net1", ifacerConfig(101)), cnicall.CodeConfig, "want one ifacer for an interface, or DEL first")
		w.parents("after another VLAN", true, "bond0", "bond0.100")
		w.below(s, cnicall.Add, pluginIfacer, "net2", ifacerConfig(101)) // another interface of the pod
		w.below(s, cnicall.Del, pluginIfacer, "net1", ifacerConfig(100))
		w.parents("one of two", true, "bond0", "bond0.101")
		w.parents("one of two", false, "bond0.100")
		w.below(s, cnicall.Del, pluginIfacer, "net2", ifacerConfig(101))
		w.below(s, cnicall.Del, pluginIfacer, "net2", ifacerConfig(101))
		w.same(before, s)

		gone := w.sandbox("box2", "two")
		w.below(gone, cnicall.Add, pluginIfacer, "net1", ifacerConfig(100))
		gone.end()
		w.below(gone, cnicall.Del, pluginIfacer, "net1", ifacerConfig(100))
		w.same(before, s)
	})
}

// TestIfacerKilled has an agent take over from one that was killed: what was being
// made goes, and what others stand on stays.
func TestIfacerKilled(t *testing.T) {
	t.Parallel()
	half := func(att record.Attachment) record.Attachment {
		if sandboxOf(att.ContainerID) == "box1" {
			att.State = record.Attaching
		}
		return att
	}
	for _, tt := range []struct {
		name   string
		made   []string // of it, when the agent was killed
		shared bool
	}{
		{name: "before anything was made"},
		{name: "between the two", made: []string{"bond0"}},
		{name: "before the answer", made: []string{"bond0", "bond0.100"}},
		{name: "beside another pod", made: []string{"bond0", "bond0.100"}, shared: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newBonded(t)
				s, other := w.sandbox("box1", "one"), w.sandbox("box2", "two")
				before := w.snapshot(s)
				w.below(s, cnicall.Add, pluginIfacer, "net1", ifacerConfig(100))
				if tt.shared {
					w.below(other, cnicall.Add, pluginIfacer, "net1", ifacerConfig(100))
				}
				if len(tt.made) < 2 {
					w.must(w.node, rtnl.LinkDelete{Name: "bond0.100"})
				}
				if len(tt.made) < 1 {
					w.must(w.node, rtnl.LinkDelete{Name: "bond0"})
					w.must(w.node, rtnl.LinkSet{Index: 116, Up: new(true)}, rtnl.LinkSet{Index: 117, Up: new(true)})
				}
				_ = w.attacher.Close() // it knows who uses what
				var err error
				if w.attacher, err = attach.New(attach.Config{}); err != nil {
					t.Fatal(err)
				}
				w.again(half)
				if found := w.found(); len(found) != 1 || !strings.Contains(found[0], "half attached") {
					t.Errorf("repairs %q", found)
				}
				if tt.shared {
					w.parents("with another pod", true, "bond0", "bond0.100")
					w.below(other, cnicall.Check, pluginIfacer, "net1", ifacerConfig(100))
					w.below(other, cnicall.Del, pluginIfacer, "net1", ifacerConfig(100))
				}
				w.below(s, cnicall.Del, pluginIfacer, "net1", ifacerConfig(100))
				w.same(before, s)
			})
		})
	}
}

// TestIfacerGC takes away what Multus lists no more, and what it left when it is in
// front no more.
func TestIfacerGC(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newBonded(t)
		one, two := w.multus(w.sandbox("box1", "one"), bonded), w.multus(w.sandbox("box2", "two"), bonded)
		before := w.snapshot(one.s)
		for _, m := range []*multus{one, two} {
			if _, err := m.add(); err != nil {
				t.Fatal(err)
			}
		}
		list, err := libcni.NetworkConfFromBytes([]byte(strings.Replace(bonded, "1.0.0", "1.1.0", 1)))
		if err != nil {
			t.Fatal(err)
		}
		for _, valid := range [][]cnitypes.GCAttachment{{{ContainerID: "box1", IfName: "net1"}, {ContainerID: "box2", IfName: "net1"}}, {{ContainerID: "box2", IfName: "net1"}}} {
			if err := one.cni.GCNetworkList(t.Context(), list, &libcni.GCArgs{ValidAttachments: valid}); err != nil {
				t.Error(err)
			}
			w.parents(fmt.Sprintf("GC of all but %v", valid), true, "bond0", "bond0.100")
		}
		if _, ok := w.server.config.Records.Get(ifacerID("box1", "net1")); ok {
			t.Error("box1 stands on the VLAN still")
		}
		w.ok(two.s, cnicall.Del) // Multus has gone
		w.parents("after all", false, "bond0", "bond0.100")
		w.must(one.s.client, rtnl.LinkSet{Index: 1, Up: new(true)})
		w.same(before, one.s)
	})
}

// TestIfacerPlain makes nothing where a network stands on one netdev, and passes on
// what was made in front of it.
func TestIfacerPlain(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		before := w.snapshot(s)
		const plain = `{"cniVersion":"%s","name":"gpu1","type":"ifacer","interfaces":["enp11s0f0np0"],"vlanID":0%s}`
		for _, tt := range []struct{ version, more, want string }{
			{"0.3.1", "", `{"cniVersion":"0.3.1","dns":{}}`},
			{"1.0.0", `,"prevResult":null`, `{"cniVersion":"1.0.0"}`},
			{
				"1.0.0", `,"prevResult":{"cniVersion":"1.0.0","interfaces":[{"name":"lo"}]}`,
				`{"cniVersion":"1.0.0","interfaces":[{"name":"lo"}]}`,
			},
		} {
			answer := w.server.Handle(t.Context(), s.belowRequest(cnicall.Add, pluginIfacer, "net1", fmt.Sprintf(plain, tt.version, tt.more)))
			if answer.Error != nil || string(answer.Output) != tt.want {
				t.Errorf("%s, %v: want %s", answer.Output, answer.Error, tt.want)
			}
		}
		w.below(s, cnicall.Check, pluginIfacer, "net1", fmt.Sprintf(plain, "1.0.0", ""))
		w.below(s, cnicall.Del, pluginIfacer, "net1", fmt.Sprintf(plain, "1.0.0", ""))
		w.recorded("box1/ifacer/net1", record.Attaching, record.Attached, record.Detaching)
		w.same(before, s)
	})
}

// TestIfacerMaster has the netdev of a network be that of its main plugin, whatever
// stands in front.
func TestIfacerMaster(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		bonded:                            "bond0.100",
		`{"type":"macvlan","master":"a"}`: "a",
		`{"plugins":[{"master":"a"},{"master":"b"}]}`: "a",
		`{"plugins":[{"type":"ovs"}]}`:                "",
		`{`:                                           "",
	} {
		if got := masterOf(config); got != want {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}
