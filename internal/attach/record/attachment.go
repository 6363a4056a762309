package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"railhead/internal/attach"
	"railhead/internal/kernel/netns"
)

// State is how far an attachment has come.
type State string

// States of attachments.
const (
	// Attaching: the kernel may have all of the plan, part of it, or nothing.
	Attaching State = "attaching"
	Attached  State = "attached"
	// Detaching: it is being taken away, and what is left may be anything.
	Detaching State = "detaching"
)

// Attachment is what the node knows of one pod's sandbox: enough to answer again,
// to check and to take everything away, without the API server. What is behind
// its pointers is read only once it was given to a [Store], or is from one.
type Attachment struct {
	ContainerID string    `json:"containerID"` // of its sandbox
	PodUID      string    `json:"podUID,omitempty"`
	Namespace   string    `json:"namespace,omitempty"`
	Name        string    `json:"name,omitempty"`
	NetNS       string    `json:"netns,omitempty"` // path of its network namespace
	ID          netns.ID  `json:"id"`              // of that namespace, as long as it lives
	BootID      string    `json:"bootID,omitempty"`
	At          time.Time `json:"at"` // when it began
	State       State     `json:"state"`
	Sequence    uint64    `json:"sequence,omitempty"` // of the assignment of its addresses; 0: none
	Key         Key       `json:"key"`
	// Plan is nil where nothing was planned.
	Plan     *attach.Plan `json:"plan,omitempty"`
	Networks []Network    `json:"networks,omitempty"`
	// Answer is the runtime's result, for an ADD that is asked again.
	Answer json.RawMessage `json:"answer,omitempty"`
	Report Report          `json:"report"`

	// Newer is the version of a record that a later release wrote, 0 otherwise. What
	// that release says beyond this one is not in the other fields.
	Newer int `json:"-"`
	// PlanLost says that there was a Plan, and that its line is damaged.
	PlanLost bool `json:"planLost,omitempty"`
}

// Key names the assignment of an attachment's addresses.
type Key struct {
	PodUID  string `json:"podUID,omitempty"`
	Sandbox string `json:"sandbox,omitempty"`
}

// Network is one network that was attached.
type Network struct {
	Name      string     `json:"name,omitempty"`      // of the CNI network
	Interface string     `json:"interface,omitempty"` // in the pod
	NAD       string     `json:"nad,omitempty"`       // namespace/name, "" for the cluster's own
	From      string     `json:"from,omitempty"`      // where its configuration stood
	Default   bool       `json:"default,omitempty"`
	Delegated []Delegate `json:"delegated,omitempty"` // plugins of others that were run, in order
}

// Delegate is one plugin of another's that was run: all that its DEL needs.
type Delegate struct {
	Config json.RawMessage `json:"config"` // complete
	Type   string          `json:"type"`
	IfName string          `json:"ifName"`
	Result json.RawMessage `json:"result,omitempty"` // nil: it failed or was not heard of
	Chain  int             `json:"chain"`            // its place in the network's chain
}

// clone is an Attachment whose networks can be added to.
func (a Attachment) clone() Attachment {
	a.Networks = slices.Clone(a.Networks)
	for i := range a.Networks {
		a.Networks[i].Delegated = slices.Clone(a.Networks[i].Delegated)
	}
	return a
}

// check wants what can be written: an ID, and JSON where JSON is kept.
func (a Attachment) check() error {
	if a.ContainerID == "" {
		return errors.New("attachment without a container ID: want that of the sandbox")
	}
	texts := map[string]json.RawMessage{"answer": a.Answer}
	for i, n := range a.Networks {
		for j, d := range n.Delegated {
			at := fmt.Sprintf("networks[%d].delegated[%d].", i, j)
			texts[at+"config"], texts[at+"result"] = d.Config, d.Result
		}
	}
	for _, at := range slices.Sorted(maps.Keys(texts)) {
		if text := texts[at]; text != nil && !json.Valid(text) {
			return fmt.Errorf("attachment %s: %s: %q: want JSON", a.ContainerID, at, text)
		}
	}
	return nil
}
