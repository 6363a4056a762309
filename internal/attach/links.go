package attach

import (
	"errors"
	"fmt"
	"slices"

	"railhead/internal/kernel/rtnl"
)

// addLinks makes the pod's links where they belong, moves devices there, then
// makes what stands on links of the pod.
func (w *work) addLinks(stage string) error {
	var made, moved, above []action
	for n := range w.plan.Interfaces {
		i := &w.plan.Interfaces[n]
		switch {
		case i.Kind == Foreign:
		case i.Kind == HostDevice:
			moved = append(moved, action{
				owner: i.Name,
				call:  func() error { return w.bringIn(i) }, undoCall: func() error { return w.bringBack(i) },
			})
		case i.InContainer:
			above = append(above, w.linkInPod(i))
		default:
			made = append(made, action{owner: i.Name, onNode: true, made: true, do: w.linkAdd(i), undo: rtnl.LinkDelete{Index: i.Index}})
		}
	}
	return w.run(stage, slices.Concat(made, w.veth(), moved, above, w.formerDefaults()))
}

// linkAdd makes a link on one of the node, in the pod.
func (w *work) linkAdd(i *PlannedInterface) rtnl.LinkAdd {
	parent := i.ParentIndex
	if parent == 0 {
		parent = w.parents[i.Parent]
	}
	return rtnl.LinkAdd{
		Name: i.Name, Kind: string(i.Kind), Parent: parent, NetNS: w.ns.FD(), Index: i.Index,
		MAC: macOf(i.MAC), MTU: i.MTU, TxQueueLen: i.TxQueueLen, Group: Group, Up: true, Mode: i.Mode, VLANID: i.VLANID,
	}
}

// linkInPod makes a link on one of the pod, which may just have been made.
func (w *work) linkInPod(i *PlannedInterface) action {
	return action{owner: i.Name, made: true, undo: rtnl.LinkDelete{Index: i.Index}, call: func() error {
		add := w.linkAdd(i)
		if add.NetNS = 0; add.Parent == 0 {
			add.Parent = w.index[i.Parent]
		}
		return errors.Join(w.pod.Do(add)...)
	}}
}

// veth makes the pair between pod and node.
func (w *work) veth() []action {
	v := w.plan.Routing.Veth
	if v == nil {
		return nil
	}
	index := w.index[v.PodName]
	add := rtnl.LinkAdd{
		Name: v.PodName, Kind: kindVeth, NetNS: w.ns.FD(), Index: index, MAC: v.PodMAC, MTU: int(v.MTU), Group: Group, Up: true,
		Peer: rtnl.VethPeer{Name: v.HostName, MAC: v.HostMAC, MTU: int(v.MTU)},
	}
	return []action{
		{owner: v.Owner, onNode: true, made: true, do: add, undo: rtnl.LinkDelete{Index: index}},
		{owner: v.Owner, call: func() error {
			l, err := w.a.node.LinkByName(v.HostName)
			if err != nil {
				return fmt.Errorf("the node's end of %s: %w", v.PodName, err)
			}
			w.host = l.Index
			return errors.Join(w.a.node.Do(rtnl.LinkSet{Index: l.Index, Up: new(true)})...)
		}},
	}
}
