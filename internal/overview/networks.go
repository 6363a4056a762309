package overview

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// Network is a SpiderMultusConfig with what was made of it, or a
// NetworkAttachmentDefinition that none made.
type Network struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Foreign says that it is a NetworkAttachmentDefinition of somebody else.
	Foreign bool `json:"foreign,omitempty"`

	Type     string              `json:"type,omitempty"`
	Masters  []string            `json:"masters,omitempty"`
	Bond     string              `json:"bond,omitempty"`
	VLAN     int32               `json:"vlan,omitempty"` // 0: none
	Resource string              `json:"resource,omitempty"`
	Inject   map[string][]string `json:"inject,omitempty"` // values by annotation
	Pools    []PoolName          `json:"pools,omitempty"`
	NAD      NAD                 `json:"nad"`
	// Pods are those on this network; nil where they could not be read.
	Pods []PodName `json:"pods"`
	// Ready is what the controller says, and false where none of the pools are there
	// that it names; nil where the controller said nothing.
	Ready *bool `json:"ready,omitempty"`
	// Why pods cannot use it, where they cannot.
	Why string `json:"why,omitempty"`
}

// FullName is "namespace/name".
func (n *Network) FullName() string { return n.Namespace + "/" + n.Name }

// PoolName is a name of a pool as a network has it, or a pattern.
type PoolName struct {
	Name   string `json:"name"`
	Family int64  `json:"-"` // that it is named for, 4 or 6
	// Exists says whether a pool is called so; nil where pools could not be read.
	Exists *bool `json:"exists,omitempty"`
	// WrongFamily is the family of what is called so, 4 or 6, where the network
	// wants addresses of the other.
	WrongFamily int64 `json:"wrongFamily,omitempty"`
}

// NADState is what became of a NetworkAttachmentDefinition.
type NADState string

// What a NetworkAttachmentDefinition can be, beside what its SpiderMultusConfig
// says.
const (
	NADPresent NADState = "present" // as it must be
	NADDiffers NADState = "differs" // there, and not as it must be
	NADMissing NADState = "missing"
	NADUnknown NADState = "unknown" // not read, or not known what it must be
)

// NAD is the NetworkAttachmentDefinition of a network.
type NAD struct {
	Name  string   `json:"name"`
	State NADState `json:"state"`
	Why   string   `json:"why,omitempty"` // in what it differs
}

// Networks shows all networks by namespace and name.
func Networks(o *Objects) []Network {
	c := o.catalog()
	nads := map[types.NamespacedName]*cniv1.NetworkAttachmentDefinition{}
	for _, n := range o.NADs {
		nads[types.NamespacedName{Namespace: n.Namespace, Name: n.Name}] = n
	}
	users := usersOf(o.Pods)
	made := map[types.NamespacedName]bool{}
	networks := make([]Network, 0, len(o.Configs))
	for _, obj := range o.Configs {
		n := networkOf(c, obj, o)
		key := types.NamespacedName{Namespace: n.Namespace, Name: n.NAD.Name}
		made[key] = true
		if o.NADs != nil {
			n.NAD.compare(c, obj, nads[key])
		}
		n.Pods = podsOn(o, users, key)
		networks = append(networks, n)
	}
	for key, nad := range nads {
		if !made[key] {
			networks = append(networks, foreign(nad, o, podsOn(o, users, key)))
		}
	}
	slices.SortFunc(networks, func(a, b Network) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return networks
}

// podsOn returns the pods on a network; never nil where pods were read.
func podsOn(o *Objects, users map[types.NamespacedName][]PodName, key types.NamespacedName) []PodName {
	if o.Pods == nil {
		return nil
	}
	if pods := users[key]; pods != nil {
		return pods
	}
	return []PodName{}
}

func networkOf(c *policy.Catalog, obj *v2beta1.SpiderMultusConfig, o *Objects) Network {
	n := Network{Namespace: obj.Namespace, Name: obj.Name, Type: typeOf(obj), NAD: NAD{Name: nadName(obj), State: NADUnknown}}
	n.Ready, n.Why = readiness(obj.Status.Conditions)
	if parsed, ok := c.Network(obj.Namespace, obj.Name); ok {
		n.describe(&parsed, o)
	}
	if n.Ready == nil {
		filled := obj.DeepCopy()
		c.Default(filled)
		if review := c.Review(filled, nil); !review.OK() {
			n.Ready, n.Why = new(false), review.Errors.ToAggregate().Error()
		}
	}
	if n.Ready != nil && *n.Ready {
		n.lackPools(o)
	}
	return n
}

// lackPools says that no pool is there of those that a network names for a family,
// which the controller does not mind: they may come later. One of them is enough.
func (n *Network) lackPools(o *Objects) {
	if why := append(lacking(o, n.Pools, 4), lacking(o, n.Pools, 6)...); len(why) > 0 {
		n.Ready, n.Why = new(false), strings.Join(why, "; ")+": pods are not attached for which neither they nor their namespace choose pools"
	}
}

// lacking says why none of the pools named for a family can be meant; nil where one
// can, none is named or pools were not read.
func lacking(o *Objects, named []PoolName, family int64) []string {
	names := make([]string, len(o.Pools))
	for i, pool := range o.Pools {
		names[i] = pool.Name
	}
	var lack []string
	for _, p := range named {
		switch {
		case p.Family != family:
		case p.Exists == nil || *p.Exists && p.WrongFamily == 0:
			return nil
		case p.WrongFamily != 0:
			lack = append(lack, fmt.Sprintf("ippools.ipv%d: SpiderIPPool %q is of IPv%d", family, p.Name, p.WrongFamily))
		case len(names) == 0:
			lack = append(lack, fmt.Sprintf("ippools.ipv%d: there is no SpiderIPPool %q, and no other", family, p.Name))
		default:
			lack = append(lack, fmt.Sprintf("ippools.ipv%d: there is no SpiderIPPool %q: the nearest name is %q", family, p.Name, policy.Nearest(p.Name, names)[0]))
		}
	}
	return lack
}

// describe takes what a SpiderMultusConfig means.
func (n *Network) describe(parsed *policy.Network, o *Objects) {
	n.Masters, n.VLAN, n.Resource, n.Inject = parsed.Masters, parsed.VLAN, parsed.Resource, parsed.Inject
	n.NAD.Name = parsed.NAD
	if parsed.Bond != nil {
		n.Bond = parsed.Bond.Name
	}
	for _, name := range parsed.Pools.IPv4 {
		n.Pools = append(n.Pools, poolName(o, name, 4))
	}
	for _, name := range parsed.Pools.IPv6 {
		n.Pools = append(n.Pools, poolName(o, name, 6))
	}
}

// poolName looks for the pools that a name means, which have to be of a family.
func poolName(o *Objects, name string, family int64) PoolName {
	p := PoolName{Name: name, Family: family}
	if o.Pools == nil {
		return p
	}
	p.Exists = new(false)
	for _, pool := range o.Pools {
		if matched, err := path.Match(name, pool.Name); err != nil || !matched {
			continue
		}
		p.Exists = new(true)
		parsed, _ := policy.PoolOf(pool)
		if !parsed.Subnet.IsValid() || parsed.Version() == family {
			p.WrongFamily = 0
			return p
		}
		p.WrongFamily = parsed.Version()
	}
	return p
}

func typeOf(obj *v2beta1.SpiderMultusConfig) string {
	if obj.Spec.CNIType == nil {
		return v2beta1.CNICustom
	}
	return *obj.Spec.CNIType
}

// nadName is the name that a SpiderMultusConfig asks for, whatever else is
// wrong with it.
func nadName(obj *v2beta1.SpiderMultusConfig) string {
	return cmp.Or(obj.Annotations[v2beta1.AnnotationNADName], obj.Name)
}

// foreign is a NetworkAttachmentDefinition that no SpiderMultusConfig made, if
// these were read.
func foreign(obj *cniv1.NetworkAttachmentDefinition, o *Objects, pods []PodName) Network {
	n := Network{
		Namespace: obj.Namespace, Name: obj.Name, Foreign: true, Type: mainType(obj.Spec.Config), Pods: pods,
		Resource: obj.Annotations[cniv1.AnnotationResourceName],
		NAD:      NAD{Name: obj.Name, State: NADPresent},
	}
	if o.Configs == nil {
		n.Foreign, n.NAD.State = false, NADUnknown
	}
	return n
}
