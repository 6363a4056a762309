package selection

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/policy"
)

// ErrNotYet says that an application's own pool is not made yet: the controller
// makes it soon after the application, or an Event of the application says why not.
var ErrNotYet = errors.New("the controller has made no such pool yet: Events of the application say why, if it cannot")

// Select chooses pools for every interface of a pod that gets its addresses of
// them. The error names the pod, and each interface that cannot be served with
// its annotation and what would be accepted; the others are in the Selection all
// the same, which says of each NIC what was considered.
//
// It costs the pools that are named, and all pools for each wildcard, for default
// pools and for an application's own.
func Select(catalog *policy.Catalog, facts *Facts) (Selection, error) {
	s := &selector{catalog: catalog, config: catalog.Config(), facts: facts, owners: ownersOf(facts)}
	s.said = read(&facts.Pod, facts.Namespace.Annotations, s.config)
	chosen := Selection{
		Pod:      types.NamespacedName{Namespace: facts.Pod.Namespace, Name: facts.Pod.Name},
		Identity: IdentityOf(&facts.Pod, s.config),
		Routes:   s.said.routes.value,
	}
	chosen.Migration = chosen.Identity.Kind == KindVirtualMachine && isMigrationTarget(&facts.Pod)
	errs := []error{s.said.routes.err}
	for i := range facts.Interfaces {
		if at := &facts.Interfaces[i]; !at.IPAM && at.Err == nil {
			continue
		}
		n := s.nic(i)
		if n.Err != nil {
			errs = append(errs, fmt.Errorf("interface %s: %w", n.Interface, n.Err))
		}
		chosen.NICs = append(chosen.NICs, n)
	}
	chosen.Warnings = append(s.said.warnings(facts.Interfaces), s.warnings...)
	if err := errors.Join(errs...); err != nil {
		return chosen, fmt.Errorf("pod %s: %w", chosen.Pod, err)
	}
	return chosen, nil
}

// selector chooses for one pod.
type selector struct {
	catalog  *policy.Catalog
	config   policy.Config
	facts    *Facts
	owners   []policy.Application
	said     said
	warnings []string
}

// ownersOf are the controllers of a pod, nearest first.
func ownersOf(f *Facts) []policy.Application {
	owner := metav1.GetControllerOfNoCopy(&f.Pod)
	if owner == nil {
		return nil
	}
	own := policy.Application{GroupVersion: owner.APIVersion, Kind: owner.Kind, Namespace: f.Pod.Namespace, Name: owner.Name, UID: owner.UID}
	return append([]policy.Application{own}, f.Above...)
}

// nic chooses for the interface at a place.
func (s *selector) nic(place int) NIC {
	at := &s.facts.Interfaces[place]
	n := NIC{Interface: at.Name, CleanGateway: at.CleanGateway, Err: at.Err}
	if n.Err != nil {
		return n
	}
	o, err := s.sourceFor(place)
	if err != nil {
		n.Err = err
		return n
	}
	n.CleanGateway = n.CleanGateway || o.clean
	exact, err := exactOf(at)
	errs := []error{err}
	for _, version := range []int64{4, 6} {
		if len(o.offers[family(version)]) > 0 {
			errs = append(errs, s.choose(&n, at, o, version, exact[family(version)]))
		} else if want := exact[family(version)]; want.IsValid() {
			errs = append(errs, fmt.Errorf("annotation %s asks for %s, and %s names no IPv%d pool: want one that has it", cniv1.AnnotationNetworks, want.Addr(), o.from, version))
		}
	}
	n.Err = errors.Join(errs...)
	return n
}

// choose adds the family of an interface whose pools are offered.
func (s *selector) choose(n *NIC, at *Interface, o source, version int64, exact netip.Prefix) error {
	f := Family{Version: version}
	if exact.IsValid() {
		f.Exact = exact.Addr()
	}
	seen := map[string]bool{}
	var passed []string
	for i := range o.offers[family(version)] {
		offered := &o.offers[family(version)][i]
		if seen[offered.name] {
			continue
		}
		seen[offered.name] = true
		why := s.whyNot(offered, at, version, exact)
		n.Considered = append(n.Considered, Considered{Pool: offered.name, Family: version, From: o.from, Why: why})
		if why == "" {
			f.Pools = append(f.Pools, offered.pool)
		} else {
			passed = append(passed, fmt.Sprintf("%s: %s", offered.name, why))
		}
	}
	switch {
	case len(f.Pools) > 0:
		n.Families = append(n.Families, f)
		return nil
	case !s.isOn(version) && s.isOn(other(version)) && len(o.offers[family(other(version))]) > 0:
		return nil // the pod has what the cluster has
	}
	return fmt.Errorf("%s: want an IPv%d pool that can serve the pod, and none of these can: %s", o.from, version, strings.Join(passed, "; "))
}

// isOn says whether the cluster has a family.
func (s *selector) isOn(version int64) bool {
	if version == 4 {
		return s.config.EnableIPv4
	}
	return s.config.EnableIPv6
}

// family is the place of a family in pairs of them.
func family(version int64) int {
	if version == 4 {
		return 0
	}
	return 1
}

func other(version int64) int64 {
	if version == 4 {
		return 6
	}
	return 4
}

// warn says something once.
func (s *selector) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.warnings, text) {
		s.warnings = append(s.warnings, text)
	}
}

// exactOf are the addresses that an interface is to have, by family.
func exactOf(at *Interface) (exact [2]netip.Prefix, err error) {
	for _, ip := range at.IPs {
		f := family(4)
		if ip.Addr().Is6() {
			f = family(6)
		}
		if exact[f].IsValid() && exact[f].Addr() != ip.Addr() {
			return exact, fmt.Errorf("annotation %s asks for %s and %s: want one address of a family for an interface", cniv1.AnnotationNetworks, exact[f].Addr(), ip.Addr())
		}
		exact[f] = ip
	}
	return exact, nil
}
