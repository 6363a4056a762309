package routing

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// Options are how one interface is coordinated: what the cluster, its network
// and its pod say of it, merged. Merge makes them; they are read only.
type Options struct {
	Mode          string // v2beta1.ModeAuto, ModeUnderlay, ModeOverlay or ModeDisabled
	TunePodRoutes bool   // the interface has a table of its own

	// What is reached over the node, host bits cleared.
	PodCIDRs, ServiceCIDRs, HijackCIDRs []netip.Prefix

	PolicyRoutes     []policy.Route
	PolicyRoutesFrom Origin
	DefaultRouteNIC  string // name in the pod; "" is the default network's interface
	DefaultRouteFrom Origin

	MACPrefix       []byte // 2 bytes, or nil
	HostRuleTable   uint32
	PodRPFilter     int    // 0, 1 or 2; negative: left as it is
	TxQueueLen      uint32 // packets; 0: left as it is
	VethLinkAddress netip.Addr
	VethMTU         uint32 // bytes
	Detection       Detection

	// Unready is why the CIDRs of pods and Services may be incomplete; "" if they are not.
	Unready string
}

// Detection is what is asked on the wire before the pod starts.
type Detection struct {
	Gateway, Conflict bool
	Retries           int           // how often is asked
	Timeout           time.Duration // for one answer
	Interval          time.Duration // between two questions
}

// Origin is who said something. The larger wins.
type Origin int

// Origins.
const (
	FromCluster Origin = iota
	FromNetwork
	FromPod
)

// String names the place to correct.
func (o Origin) String() string {
	switch o {
	case FromNetwork:
		return "the network's coordinator"
	case FromPod:
		return "annotation " + v2beta1.AnnotationDefaultRouteNIC
	}
	return "SpiderCoordinator default"
}

// Sources are what Options are made of.
type Sources struct {
	// Cluster and Status are of the SpiderCoordinator "default", empty if there is none.
	Cluster v2beta1.CoordinatorSpec
	Status  v2beta1.CoordinatorStatus
	// Element is the plugin of type "coordinator" in the network's chain; nil says nothing.
	Element json.RawMessage
	// DefaultRouteNIC is the pod's annotation ipam.spidernet.io/default-route-nic, "" without one.
	DefaultRouteNIC string
}

// Merge is what holds for an interface: what the pod says before what its
// network says before what the cluster says before the defaults. A list
// replaces another, also an empty one. Errors name place, field, value and what
// would be accepted.
func Merge(s Sources) (Options, error) {
	if _, errs := reviewed(s.Cluster); errs != nil {
		return Options{}, fmt.Errorf("%s: %w", FromCluster, errs.ToAggregate())
	}
	said, more, err := readElement(s.Element)
	if err != nil {
		return Options{}, fmt.Errorf("%s: %w", FromNetwork, err)
	}
	spec, errs := reviewed(overridden(s.Cluster, said))
	if errs != nil { // the cluster's have none
		for _, e := range errs {
			e.Field = strings.TrimPrefix(e.Field, "spec.")
		}
		return Options{}, fmt.Errorf("%s: %w", FromNetwork, errs.ToAggregate())
	}
	o, err := optionsOf(spec)
	if err != nil {
		return Options{}, fmt.Errorf("coordinator: %w", err)
	}
	if err := o.setCIDRs(s.Status, more); err != nil {
		return Options{}, err
	}
	if said.PolicyRoutes != nil {
		o.PolicyRoutesFrom = FromNetwork
	}
	if said.PodDefaultRouteNIC != nil {
		o.DefaultRouteFrom = FromNetwork
	}
	if s.DefaultRouteNIC != "" {
		o.DefaultRouteNIC, o.DefaultRouteFrom = s.DefaultRouteNIC, FromPod
	}
	return o, nil
}

// reviewed is a spec with its defaults, and which rules of admission it breaks.
func reviewed(spec v2beta1.CoordinatorSpec) (v2beta1.CoordinatorSpec, field.ErrorList) {
	obj := &v2beta1.SpiderCoordinator{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: *spec.DeepCopy()}
	rules := policy.NewCatalog()
	rules.Default(obj)
	return obj.Spec, rules.Review(obj, nil).Errors
}

// overridden is spec with what said says instead.
func overridden(spec, said v2beta1.CoordinatorSpec) v2beta1.CoordinatorSpec {
	override(&spec.Mode, said.Mode)
	override(&spec.TunePodRoutes, said.TunePodRoutes)
	override(&spec.PodDefaultRouteNIC, said.PodDefaultRouteNIC)
	override(&spec.PodMACPrefix, said.PodMACPrefix)
	override(&spec.HostRuleTable, said.HostRuleTable)
	override(&spec.PodRPFilter, said.PodRPFilter)
	override(&spec.TxQueueLen, said.TxQueueLen)
	override(&spec.VethLinkAddress, said.VethLinkAddress)
	override(&spec.VethMTU, said.VethMTU)
	override(&spec.DetectIPConflict, said.DetectIPConflict)
	override(&spec.DetectGateway, said.DetectGateway)
	if said.DetectOptions != nil {
		spec.DetectOptions = detection(spec.DetectOptions, *said.DetectOptions)
	}
	if said.HijackCIDR != nil {
		spec.HijackCIDR = said.HijackCIDR
	}
	if said.PolicyRoutes != nil {
		spec.PolicyRoutes = said.PolicyRoutes
	}
	return spec
}

// detection is o, which may be nil, with what said says instead.
func detection(o *v2beta1.DetectOptions, said v2beta1.DetectOptions) *v2beta1.DetectOptions {
	var merged v2beta1.DetectOptions
	if o != nil {
		merged = *o
	}
	override(&merged.Retries, said.Retries)
	override(&merged.Timeout, said.Timeout)
	override(&merged.Interval, said.Interval)
	return &merged
}

func override[T any](what **T, said *T) {
	if said != nil {
		*what = said
	}
}

// optionsOf parses a spec that has its defaults and keeps the rules.
func optionsOf(s v2beta1.CoordinatorSpec) (Options, error) {
	o := Options{
		Mode:          *s.Mode,
		TunePodRoutes: *s.TunePodRoutes,
		HostRuleTable: uint32(*s.HostRuleTable),
		PodRPFilter:   *s.PodRPFilter,
		TxQueueLen:    uint32(*s.TxQueueLen),
		VethMTU:       uint32(*s.VethMTU),
		Detection: Detection{
			Gateway:  *s.DetectGateway,
			Conflict: *s.DetectIPConflict,
			Retries:  *s.DetectOptions.Retries,
		},
	}
	if s.PodDefaultRouteNIC != nil {
		o.DefaultRouteNIC = *s.PodDefaultRouteNIC
	}
	var err error
	if o.MACPrefix, err = macPrefix(s.PodMACPrefix); err != nil {
		return o, err
	}
	if s.VethLinkAddress != nil && *s.VethLinkAddress != "" {
		if o.VethLinkAddress, err = netip.ParseAddr(*s.VethLinkAddress); err != nil {
			return o, fmt.Errorf("vethLinkAddress: %w", err)
		}
	}
	if o.Detection.Timeout, err = time.ParseDuration(*s.DetectOptions.Timeout); err != nil {
		return o, fmt.Errorf("detectOptions.timeout: %w", err)
	}
	if o.Detection.Interval, err = time.ParseDuration(*s.DetectOptions.Interval); err != nil {
		return o, fmt.Errorf("detectOptions.interval: %w", err)
	}
	if o.HijackCIDRs, err = prefixes("hijackCIDR", s.HijackCIDR); err != nil {
		return o, err
	}
	o.PolicyRoutes, err = policyRoutes(s.PolicyRoutes)
	return o, err
}

// macPrefix is "0a:1b" as two bytes, or nil for nothing.
func macPrefix(text *string) ([]byte, error) {
	if text == nil || *text == "" {
		return nil, nil
	}
	both, err := strconv.ParseUint(strings.Replace(*text, ":", "", 1), 16, 16)
	if err != nil {
		return nil, fmt.Errorf("podMACPrefix: %w", err)
	}
	return []byte{byte(both >> 8), byte(both)}, nil
}

// policyRoutes are routes that keep the rules, bare addresses already written as CIDRs.
func policyRoutes(written []v2beta1.Route) ([]policy.Route, error) {
	var routes []policy.Route
	for i, w := range written {
		dst, err := netip.ParsePrefix(w.Dst)
		if err != nil {
			return nil, fmt.Errorf("policyRoutes[%d].dst: %w", i, err)
		}
		gw, err := netip.ParseAddr(w.Gw)
		if err != nil {
			return nil, fmt.Errorf("policyRoutes[%d].gw: %w", i, err)
		}
		routes = append(routes, policy.Route{Dst: dst.Masked(), Gw: gw.Unmap()})
	}
	return routes, nil
}

// setCIDRs takes over the CIDRs of the cluster's pods and Services: the
// network's own before what the controller found out.
func (o *Options) setCIDRs(status v2beta1.CoordinatorStatus, said elementCIDRs) error {
	pods, services := status.OverlayPodCIDR, status.ServiceCIDR
	from := FromCluster.String() + ": status."
	if status.Phase != v2beta1.PhaseSynced && (said.OverlayPodCIDR == nil || said.ServiceCIDR == nil) {
		o.Unready = unready(status)
	}
	var err error
	if o.PodCIDRs, err = prefixes(from+"overlayPodCIDR", pods); err != nil {
		return err
	}
	if o.ServiceCIDRs, err = prefixes(from+"serviceCIDR", services); err != nil {
		return err
	}
	if said.OverlayPodCIDR != nil {
		if o.PodCIDRs, err = prefixes(FromNetwork.String()+": overlayPodCIDR", said.OverlayPodCIDR); err != nil {
			return err
		}
	}
	if said.ServiceCIDR != nil {
		o.ServiceCIDRs, err = prefixes(FromNetwork.String()+": serviceCIDR", said.ServiceCIDR)
	}
	return err
}

// unready says why a coordinator's status does not count.
func unready(status v2beta1.CoordinatorStatus) string {
	switch {
	case status.Reason != "":
		return status.Reason
	case status.Phase != "":
		return "status.phase is " + status.Phase
	}
	return "it has no status yet"
}

// prefixes parses CIDRs and addresses, host bits cleared, in the order written.
func prefixes(name string, texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for i, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, errAddr := netip.ParseAddr(text)
			if errAddr != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("%s[%d] is %q: want a CIDR or an address, such as %q", name, i, text, "10.233.64.0/18")
			}
			prefix = single(addr.Unmap())
		}
		if prefix.Addr().Is4In6() {
			return nil, fmt.Errorf("%s[%d] is %q: want an IPv4 CIDR as %q", name, i, text, "10.233.64.0/18")
		}
		all = append(all, prefix.Masked())
	}
	return all, nil
}
