package overview

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam/selection"
	"railhead/internal/policy"
	"railhead/internal/policy/annotation"
)

// Explanation is which addresses a pod has, by which decision, or why it has
// none yet.
type Explanation struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	Node      string    `json:"node,omitempty"`
	Phase     string    `json:"phase,omitempty"`    // of the pod's status
	Identity  string    `json:"identity,omitempty"` // that its addresses are pinned to
	// HostNetwork says that it uses the node's network, and gets no addresses.
	HostNetwork bool                 `json:"hostNetwork,omitempty"`
	Interfaces  []ExplainedInterface `json:"interfaces"`
	// Why it has less than it is to have, where it does.
	Why []string `json:"why,omitempty"`
	// Warnings are about what of its annotations has no effect, and about addresses
	// that it has otherwise than by a grant.
	Warnings []string `json:"warnings,omitempty"`
	// Problems are what could not be read or understood.
	Problems []string `json:"problems,omitempty"`
}

// FullName is "namespace/name".
func (e *Explanation) FullName() string { return e.Namespace + "/" + e.Name }

// ExplainedInterface is one interface of a pod.
type ExplainedInterface struct {
	Interface string `json:"interface"`
	Network   string `json:"network,omitempty"` // NetworkAttachmentDefinition "namespace/name"; empty for the cluster's network
	// Pools says that its addresses are of SpiderIPPools, or that nobody knows.
	Pools      bool                   `json:"pools"`
	Considered []selection.Considered `json:"considered,omitempty"`
	Given      []GivenAddress         `json:"given,omitempty"`
	// Why no pool can serve it, where none can.
	Why string `json:"why,omitempty"`
}

// GivenAddress is an address that an interface has by the pod's SpiderEndpoint,
// and what lease and ledger say of it.
type GivenAddress struct {
	Address string `json:"address"` // with its prefix length
	Pool    string `json:"pool"`
	Lease   string `json:"lease,omitempty"` // the AddressLease that shows it
	Epoch   int64  `json:"epoch,omitempty"` // of the grant, by the ledger
	Ledger  string `json:"ledger,omitempty"`
	// Problem is what contradicts that the pod has it.
	Problem string `json:"problem,omitempty"`
}

// Ended says whether the pod has ended: it runs no more, and will not again.
func (e *Explanation) Ended() bool { return e.Phase == phaseSucceeded || e.Phase == phaseFailed }

// Phases of pods.
const (
	phaseRunning   = "Running"
	phaseSucceeded = "Succeeded"
	phaseFailed    = "Failed"
)

// Explain says which pools were considered for each interface of a pod, why each
// was passed over, and what was given by whom, or why nothing was. Of a pod that
// has ended, or uses the node's network, it says that and what it has all the
// same. The errors name ledgers that cannot be understood; the others count.
func Explain(o *PodObjects) (Explanation, []error) {
	e := Explanation{
		Namespace: o.Pod.Namespace, Name: o.Pod.Name, UID: o.Pod.UID, Node: o.PodNode.Name, Phase: o.Phase, HostNetwork: o.HostNetwork,
		Interfaces: []ExplainedInterface{},
	}
	books, errs := ledgersOf(&o.Objects)
	e.Warnings = unknownAnnotations(o)
	switch {
	case o.HostNetwork:
		e.take(o, &books)
		e.sayHostNetwork(o)
	case e.Ended():
		e.Identity = selection.IdentityOf(&o.Pod, o.Config).String()
		e.take(o, &books)
		e.sayEnded(o)
	default:
		chosen := e.choose(o)
		e.Identity = chosen.Identity.String()
		e.take(o, &books)
		e.sayMissing(o)
	}
	return e, errs
}

// unknownAnnotations are those of the pod and its namespace that look like one of
// ours and are none.
func unknownAnnotations(o *PodObjects) []string {
	warnings := annotation.UnknownOfPod(o.Pod.Annotations)
	for _, why := range annotation.UnknownOfNamespace(o.PodNamespace.Annotations) {
		warnings = append(warnings, "namespace "+o.Pod.Namespace+": "+why)
	}
	return warnings
}

// say adds reasons, each once.
func (e *Explanation) say(reasons ...string) {
	for _, why := range reasons {
		if !slices.Contains(e.Why, why) {
			e.Why = append(e.Why, why)
		}
	}
}

// choose chooses pools as the agent does.
func (e *Explanation) choose(o *PodObjects) selection.Selection {
	facts := &selection.Facts{Pod: o.Pod, Namespace: o.PodNamespace, Node: o.PodNode, Above: o.Above}
	var err error
	if facts.Interfaces, err = selection.InterfacesOf(&o.Pod, o.nad); err != nil {
		e.say(err.Error())
	}
	for i := range facts.Interfaces {
		at := &facts.Interfaces[i]
		shown := ExplainedInterface{Interface: at.Name, Pools: at.IPAM}
		if at.Err != nil {
			shown.Pools, shown.Why = true, at.Err.Error()
		}
		if at.Network.Name != "" {
			shown.Network = at.Network.String()
		}
		e.Interfaces = append(e.Interfaces, shown)
	}
	if o.Pools == nil {
		e.say("which pools are considered is not known, since they could not be read")
		return selection.Selection{Identity: selection.IdentityOf(&o.Pod, o.Config)}
	}
	catalog := o.catalog()
	catalog.SetConfig(o.Config)
	facts.Closed = closedBy(catalog, o.Pools)
	chosen, err := selection.Select(catalog, facts)
	e.Warnings = append(e.Warnings, chosen.Warnings...)
	isSaid := false
	for i := range chosen.NICs {
		n := &chosen.NICs[i]
		at := e.at(n.Interface)
		at.Considered = n.Considered
		if n.Err != nil {
			at.Why, isSaid = n.Err.Error(), true
		}
	}
	if err != nil && !isSaid {
		e.say(err.Error())
	}
	return chosen
}

// nad answers the configuration of a NetworkAttachmentDefinition.
func (o *PodObjects) nad(key types.NamespacedName) (string, error) {
	if o.NADs == nil {
		return "", fmt.Errorf("NetworkAttachmentDefinition %s could not be read", key)
	}
	for _, n := range o.NADs {
		if n.Namespace == key.Namespace && n.Name == key.Name {
			return n.Spec.Config, nil
		}
	}
	return "", fmt.Errorf("there is no NetworkAttachmentDefinition %s", key)
}

// closedBy says why pools give nothing, by what the controller says of them and
// else by the rules.
func closedBy(c *policy.Catalog, pools []*v2beta1.SpiderIPPool) func(string) string {
	closed := map[string]string{}
	for _, obj := range pools {
		ready, why := readiness(obj.Status.Conditions)
		if ready == nil {
			filled := obj.DeepCopy()
			c.Default(filled)
			if review := c.Review(filled, nil); !review.OK() {
				ready, why = new(false), review.Errors.ToAggregate().Error()
			}
		}
		if ready != nil && !*ready {
			closed[obj.Name] = "not ready: " + cmp.Or(why, "the controller says no more")
		}
	}
	return func(pool string) string { return closed[pool] }
}

// at is the interface of a name, which is added if there is none.
func (e *Explanation) at(name string) *ExplainedInterface {
	i := slices.IndexFunc(e.Interfaces, func(n ExplainedInterface) bool { return n.Interface == name })
	if i < 0 {
		i = len(e.Interfaces)
		e.Interfaces = append(e.Interfaces, ExplainedInterface{Interface: name, Pools: true})
	}
	return &e.Interfaces[i]
}
