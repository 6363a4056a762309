package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"text/template"

	"golang.org/x/sys/unix"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/hack/cluster/standin/deviceplugin"
	"railhead/internal/kernel/netns"
)

// Label is on the Node objects of stand-ins; with Options.Taint it is a taint as well.
const Label = "railhead.io/stand-in"

// node is a stand-in that has its namespace, its network and its sockets.
type node struct {
	Node
	ns      *netns.NS
	network *network
	devices *deviceplugin.Host
	uid     types.UID // of the Node object
}

// newNode makes everything of a node on this machine.
func newNode(ctx context.Context, n Node, g ground, conflist *template.Template, plugins []string) (*node, error) {
	made := &node{Node: n}
	if err := made.build(ctx, g, conflist, plugins); err != nil {
		return nil, errors.Join(fmt.Errorf("node %s: %w", n.Name, err), made.close())
	}
	return made, nil
}

func (n *node) build(ctx context.Context, g ground, conflist *template.Template, plugins []string) error {
	var err error
	if n.network, err = newNetwork(conflist, n.Node, plugins); err != nil {
		return err
	}
	if err := newNamespace(n.namespace()); err != nil {
		return err
	}
	if n.ns, err = netns.Open(n.namespace()); err != nil {
		return err
	}
	if err := g.connect(n.Node, n.ns.FD()); err != nil {
		return err
	}
	if err := furnish(n.ns, n.Node); err != nil {
		return err
	}
	n.devices, err = deviceplugin.Listen(ctx, n.Root)
	return err
}

// close ends what holds on to something. What is mounted is left to ground.
func (n *node) close() error {
	if n.devices != nil {
		n.devices.Close()
	}
	if n.ns != nil {
		return n.ns.Close()
	}
	return nil
}

// hosts are the node's addresses.
func (n Node) hosts() []netip.Addr {
	var all []netip.Addr
	for _, p := range n.Hosts {
		all = append(all, p.Addr())
	}
	return all
}

// object is a node as a kubelet registers it.
func (n Node) object(taint bool, now meta.Time) *core.Node {
	o := &core.Node{
		ObjectMeta: meta.ObjectMeta{Name: n.Name, Labels: map[string]string{
			core.LabelHostname: n.Name, core.LabelOSStable: runtime.GOOS, core.LabelArchStable: runtime.GOARCH, Label: "true",
		}},
		Spec: core.NodeSpec{PodCIDRs: texts(n.Pods), PodCIDR: n.Pods[0].String()},
		Status: core.NodeStatus{
			Capacity: capacity(), Allocatable: capacity(),
			Conditions: nodeConditions(now),
			Addresses:  []core.NodeAddress{{Type: core.NodeHostName, Address: n.Name}},
			NodeInfo: core.NodeSystemInfo{
				MachineID: n.Name, SystemUUID: n.Name, BootID: n.Name, KernelVersion: kernelRelease(), OSImage: "stand-in",
				ContainerRuntimeVersion: "standin://1", KubeletVersion: "stand-in", OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
			},
		},
	}
	for _, a := range addresses(n.Hosts) {
		o.Status.Addresses = append(o.Status.Addresses, core.NodeAddress{Type: core.NodeInternalIP, Address: a})
	}
	if taint {
		o.Spec.Taints = []core.Taint{{Key: Label, Value: "true", Effect: core.TaintEffectNoSchedule}}
	}
	return o
}

// capacity is that of a large machine for training: nothing but devices should run short.
func capacity() core.ResourceList {
	return core.ResourceList{
		core.ResourceCPU:              resource.MustParse("192"),
		core.ResourceMemory:           resource.MustParse("2Ti"),
		core.ResourceEphemeralStorage: resource.MustParse("10Ti"),
		core.ResourcePods:             resource.MustParse("250"),
	}
}

// nodeConditions are those of a node that is well.
func nodeConditions(now meta.Time) []core.NodeCondition {
	all := []core.NodeCondition{
		{Type: core.NodeMemoryPressure, Status: core.ConditionFalse, Reason: "StandIn"},
		{Type: core.NodeDiskPressure, Status: core.ConditionFalse, Reason: "StandIn"},
		{Type: core.NodePIDPressure, Status: core.ConditionFalse, Reason: "StandIn"},
		{Type: core.NodeReady, Status: core.ConditionTrue, Reason: "StandIn", Message: "a stand-in is always ready"},
	}
	for i := range all {
		all[i].LastHeartbeatTime, all[i].LastTransitionTime = now, now
	}
	return all
}

// kernelRelease is this machine's.
func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// devicePatch is a merge patch of a Node's status with what its device plugins offer.
func devicePatch(counts map[string]deviceplugin.Count) ([]byte, error) {
	capacity, allocatable := map[string]string{}, map[string]string{}
	for name, c := range counts {
		capacity[name], allocatable[name] = fmt.Sprint(c.Capacity), fmt.Sprint(c.Allocatable)
	}
	return json.Marshal(map[string]any{"status": map[string]any{"capacity": capacity, "allocatable": allocatable}})
}

// tellDevices keeps the Node object's counts of devices as the plugins say, until the context ends.
func (f *fleet) tellDevices(ctx context.Context, n *node) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.devices.Changed():
		}
		f.insist(ctx, "counts of devices", n.Name, func(ctx context.Context) error {
			patch, err := devicePatch(n.devices.Counts())
			if err != nil {
				return err
			}
			_, err = f.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, meta.PatchOptions{}, "status")
			return err
		})
	}
}
