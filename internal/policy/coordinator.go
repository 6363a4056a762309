package policy

import (
	"net/netip"

	"railhead/api/spiderpool/v2beta1"
)

// Defaults of a SpiderCoordinator.
const (
	defaultHostRuleTable = 500
	defaultVethMTU       = 1500
	defaultRetries       = 3
	defaultTimeout       = "100ms"
	defaultInterval      = "10ms"
)

// modeDisable is what the plugin of Spiderpool calls v2beta1.ModeDisabled.
const modeDisable = "disable"

// defaultCoordinator fills in what obj leaves out, in place, and writes bare
// addresses as CIDRs.
func defaultCoordinator(obj *v2beta1.SpiderCoordinator) Review {
	s := &obj.Spec
	fill(&s.Mode, v2beta1.ModeAuto)
	fill(&s.PodCIDRType, v2beta1.PodCIDRAuto)
	fill(&s.TunePodRoutes, true)
	fill(&s.HostRuleTable, defaultHostRuleTable)
	fill(&s.PodRPFilter, 0)
	fill(&s.TxQueueLen, 0)
	fill(&s.VethMTU, defaultVethMTU)
	fill(&s.DetectGateway, true)
	fill(&s.DetectIPConflict, true)
	fill(&s.DetectOptions, v2beta1.DetectOptions{})
	fill(&s.DetectOptions.Retries, defaultRetries)
	fill(&s.DetectOptions.Timeout, defaultTimeout)
	fill(&s.DetectOptions.Interval, defaultInterval)
	normaliseCoordinator(s)
	return Review{}
}

// normaliseCoordinator writes what is there in the one way that is stored.
func normaliseCoordinator(s *v2beta1.CoordinatorSpec) {
	if s.Mode != nil && *s.Mode == modeDisable {
		*s.Mode = v2beta1.ModeDisabled
	}
	for i, cidr := range s.HijackCIDR {
		s.HijackCIDR[i] = asCIDR(cidr)
	}
	for i := range s.PolicyRoutes {
		s.PolicyRoutes[i].Dst = asCIDR(s.PolicyRoutes[i].Dst)
	}
}

// asCIDR is an address as the CIDR of it alone, a CIDR with its host bits
// cleared, and anything else as it is.
func asCIDR(s string) string {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()).String()
	}
	if prefix, err := netip.ParsePrefix(s); err == nil {
		return prefix.Masked().String()
	}
	return s
}
