package ipam

import (
	"errors"
	"fmt"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
)

// Holder is who has addresses: a node, an identity (with the node it is on, if
// any), or nobody, in quarantine.
type Holder struct {
	Node     string
	Target   string // the node that a virtual machine moves to
	Identity string
	Doubtful bool // they came out of quarantine
	// Quarantine is never changed through this pointer.
	Quarantine *v1alpha1.Quarantine
}

// Equal says whether two holders are the same.
func (h Holder) Equal(other Holder) bool {
	a, b := h.Quarantine, other.Quarantine
	h.Quarantine, other.Quarantine = nil, nil
	if h != other || (a == nil) != (b == nil) {
		return false
	}
	return a == nil || a == b || a.Reason == b.Reason && a.Pod == b.Pod && a.Since.Equal(&b.Since)
}

// Parked says whether the addresses are kept for an identity that is on no node.
func (h Holder) Parked() bool { return h.Identity != "" && h.Node == "" }

// On says whether a node has the addresses, alone or beside another one.
func (h Holder) On(node string) bool { return h.Node == node || h.Target == node }

// check says what is wrong with a holder.
func (h Holder) check() error {
	switch {
	case h.Quarantine != nil && (h.Node != "" || h.Identity != "" || h.Target != ""):
		return fmt.Errorf("is in quarantine and held by node %q, target %q, identity %q: want one of the two", h.Node, h.Target, h.Identity)
	case h.Quarantine == nil && h.Node == "" && h.Identity == "":
		return errors.New("has no holder: want a node, an identity or a quarantine")
	case h.Target != "" && (h.Node == "" || h.Identity == "" || h.Target == h.Node):
		return fmt.Errorf("has target %q beside node %q and identity %q: want an identity that moves from one node to another", h.Target, h.Node, h.Identity)
	}
	return nil
}

// Run is addresses that follow each other, with one holder and one epoch.
type Run struct {
	netipx.IPRange
	Holder

	Epoch int64 // of the ledger write that granted them
}

// joins says whether a run goes on in the next one.
func (r Run) joins(next Run) bool {
	return r.Epoch == next.Epoch && r.To().Next() == next.From() && r.Equal(next.Holder)
}

// runOf parses a run of an object.
func runOf(o *v1alpha1.Run) (Run, error) {
	addresses, err := ParseRange(o.Addresses)
	if err != nil {
		return Run{}, err
	}
	run := Run{IPRange: addresses, Epoch: o.Epoch, Holder: Holder{
		Node: o.Node, Target: o.Target, Identity: o.Identity, Doubtful: o.Doubtful, Quarantine: o.Quarantine.DeepCopy(),
	}}
	return run, run.check()
}

// object is the run as objects have it.
func (r Run) object() v1alpha1.Run {
	return v1alpha1.Run{
		Addresses: FormatRange(r.IPRange), Epoch: r.Epoch, Node: r.Node, Target: r.Target,
		Identity: r.Identity, Doubtful: r.Doubtful, Quarantine: r.Quarantine.DeepCopy(),
	}
}
