package policy

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/pkg/utils"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// clusterCoordinator is the name of the SpiderCoordinator that counts.
const clusterCoordinator = "default"

const (
	maxRPFilter   = 2
	maxRouteTable = 1<<32 - 1
	maxTxQueueLen = 1<<31 - 1
)

// reviewCoordinator says what the rules say of obj after old, which is nil on create.
func reviewCoordinator(obj, old *v2beta1.SpiderCoordinator) Review {
	if obj.DeletionTimestamp != nil || old != nil && equality.Semantic.DeepEqual(obj.Spec, old.Spec) {
		return Review{}
	}
	at := field.NewPath("spec")
	r := reviewCoordinatorSpec(&obj.Spec, at)
	if obj.Spec.PodCIDRType == nil {
		r.Errors = append(r.Errors, field.Required(at.Child("podCIDRType"), "want "+oneOf(podCIDRTypes())))
	}
	if obj.Name != clusterCoordinator {
		r.warn(field.NewPath("metadata", "name"), "has no effect: only the SpiderCoordinator named %q has", clusterCoordinator)
	}
	return r
}

// reviewCoordinatorSpec reviews the spec of a SpiderCoordinator, or the
// coordinator block of a SpiderMultusConfig. What is not set is not reviewed.
func reviewCoordinatorSpec(s *v2beta1.CoordinatorSpec, at *field.Path) Review {
	var r Review
	reviewModes(&r, s, at)
	for i, cidr := range s.HijackCIDR {
		reviewDestination(&r, cidr, at.Child("hijackCIDR").Index(i))
	}
	for i, route := range s.PolicyRoutes {
		reviewPolicyRoute(&r, route, at.Child("policyRoutes").Index(i))
	}
	reviewInterfaces(&r, s, at)
	reviewNumbers(&r, s, at)
	if s.HostRPFilter != nil {
		r.warn(at.Child("hostRPFilter"), "has no effect: rp_filter of the node is left as it is")
	}
	reviewDetection(&r, s.DetectOptions, at.Child("detectOptions"))
	return r
}

func coordinatorModes() []string {
	return []string{v2beta1.ModeAuto, v2beta1.ModeUnderlay, v2beta1.ModeOverlay, v2beta1.ModeDisabled}
}

func podCIDRTypes() []string {
	return []string{v2beta1.PodCIDRAuto, v2beta1.PodCIDRCluster, v2beta1.PodCIDRCalico, v2beta1.PodCIDRCilium, v2beta1.PodCIDRNone}
}

func reviewModes(r *Review, s *v2beta1.CoordinatorSpec, at *field.Path) {
	if s.Mode != nil && *s.Mode != modeDisable {
		reviewChoice(r, *s.Mode, coordinatorModes(), at.Child("mode"))
	}
	if s.PodCIDRType != nil {
		reviewChoice(r, *s.PodCIDRType, podCIDRTypes(), at.Child("podCIDRType"))
	}
}

func reviewChoice(r *Review, value string, choices []string, at *field.Path) {
	if !slices.Contains(choices, value) {
		r.Errors = append(r.Errors, field.NotSupported(at, value, choices))
	}
}

// oneOf lists choices in words.
func oneOf(choices []string) string {
	last := len(choices) - 1
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// reviewDestination wants a CIDR or an address.
func reviewDestination(r *Review, text string, at *field.Path) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(asCIDR(text))
	if err != nil {
		r.refuse(at, text, `want a CIDR or an address, such as "169.254.0.0/16"`)
	}
	return prefix, err == nil
}

// reviewPolicyRoute wants a destination and a gateway of one family.
func reviewPolicyRoute(r *Review, route v2beta1.Route, at *field.Path) {
	dst, ok := reviewDestination(r, route.Dst, at.Child("dst"))
	gw, err := netip.ParseAddr(route.Gw)
	switch {
	case err != nil || gw.Zone() != "":
		r.refuse(at.Child("gw"), route.Gw, `want the address of a gateway, such as "172.16.11.254"`)
	case ok && gw.Unmap().Is4() != dst.Addr().Is4():
		r.refuse(at.Child("gw"), route.Gw, "dst is %s: want a gateway of the same family", dst)
	}
}

// reviewInterfaces reviews what concerns the pod's interfaces by name or address.
func reviewInterfaces(r *Review, s *v2beta1.CoordinatorSpec, at *field.Path) {
	if nic := s.PodDefaultRouteNIC; nic != nil && *nic != "" && utils.ValidateInterfaceName(*nic) != nil {
		r.refuse(at.Child("podDefaultRouteNIC"), *nic, netdevDetail)
	}
	if prefix := s.PodMACPrefix; prefix != nil && *prefix != "" {
		reviewMACPrefix(r, *prefix, at.Child("podMACPrefix"))
	}
	if address := s.VethLinkAddress; address != nil && *address != "" {
		if a, err := netip.ParseAddr(*address); err != nil || !a.Is4() {
			r.refuse(at.Child("vethLinkAddress"), *address, `want an IPv4 address without prefix, such as "169.254.100.1"`)
		}
	}
}

// reviewMACPrefix wants the first two bytes of unicast addresses.
func reviewMACPrefix(r *Review, prefix string, at *field.Path) {
	first, second, _ := strings.Cut(prefix, ":")
	high, err := strconv.ParseUint(first, 16, 8)
	_, err2 := strconv.ParseUint(second, 16, 8)
	switch {
	case len(first) != 2 || len(second) != 2 || err != nil || err2 != nil:
		r.refuse(at, prefix, `want the first two bytes of a MAC address, 4 hexadecimal digits as "0a:1b"`)
	case high&1 != 0:
		r.refuse(at, prefix, `the first byte %s is odd, which makes addresses multicast: want an even one, such as "0a:1b"`, first)
	}
}

func reviewNumbers(r *Review, s *v2beta1.CoordinatorSpec, at *field.Path) {
	if t := s.HostRuleTable; t != nil && (*t < 1 || *t > maxRouteTable || *t >= 253 && *t <= 255) {
		r.refuse(at.Child("hostRuleTable"), *t, "want the number of a routing table: 1 to %d, but not 253 to 255, which are default, main and local", maxRouteTable)
	}
	if f := s.PodRPFilter; f != nil && *f > maxRPFilter {
		r.refuse(at.Child("podRPFilter"), *f, "want 0 (off), 1 (strict), 2 (loose), or a negative number to leave it as it is")
	}
	if l := s.TxQueueLen; l != nil && (*l < 0 || *l > maxTxQueueLen) {
		r.refuse(at.Child("txQueueLen"), *l, "want 0 to leave it as it is, or a number of packets up to %d", maxTxQueueLen)
	}
	if m := s.VethMTU; m != nil && (*m < minMTU || *m > maxMTU) {
		r.refuse(at.Child("vethMTU"), *m, "want %d to %d", minMTU, maxMTU)
	}
}
