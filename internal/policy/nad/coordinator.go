package nad

import "railhead/api/spiderpool/v2beta1"

// coordinator has what this network does otherwise than the cluster's
// SpiderCoordinator, and nothing that its user did not write: what is absent
// is the cluster's. Where pods' CIDRs are looked up is the cluster's alone.
type coordinator struct {
	Type               string                 `json:"type"`
	Mode               *string                `json:"mode,omitempty"`
	HijackCIDR         []string               `json:"hijackCIDR,omitempty"`
	PolicyRoutes       []v2beta1.Route        `json:"policyRoutes,omitempty"`
	PodMACPrefix       *string                `json:"podMACPrefix,omitempty"`
	PodDefaultRouteNIC *string                `json:"podDefaultRouteNic,omitempty"`
	VethLinkAddress    *string                `json:"vethLinkAddress,omitempty"`
	VethMTU            *int                   `json:"vethMTU,omitempty"`
	TunePodRoutes      *bool                  `json:"tunePodRoutes,omitempty"`
	HostRuleTable      *int                   `json:"hostRuleTable,omitempty"`
	TxQueueLen         *int                   `json:"txQueueLen,omitempty"`
	PodRPFilter        *int                   `json:"podRPFilter,omitempty"`
	DetectIPConflict   *bool                  `json:"detectIPConflict,omitempty"`
	DetectGateway      *bool                  `json:"detectGateway,omitempty"`
	DetectOptions      *v2beta1.DetectOptions `json:"detectOptions,omitempty"`
}

// coordinatorOf is the coordinator's configuration; spec may be nil.
func coordinatorOf(spec *v2beta1.CoordinatorSpec) coordinator {
	c := coordinator{Type: "coordinator"}
	if spec == nil {
		return c
	}
	c.Mode = said(spec.Mode)
	c.HijackCIDR, c.PolicyRoutes = spec.HijackCIDR, spec.PolicyRoutes
	c.PodMACPrefix = said(spec.PodMACPrefix)
	c.PodDefaultRouteNIC = said(spec.PodDefaultRouteNIC)
	c.VethLinkAddress, c.VethMTU = said(spec.VethLinkAddress), spec.VethMTU
	c.TunePodRoutes, c.HostRuleTable = spec.TunePodRoutes, spec.HostRuleTable
	c.TxQueueLen, c.PodRPFilter = spec.TxQueueLen, spec.PodRPFilter
	c.DetectIPConflict, c.DetectGateway = spec.DetectIPConflict, spec.DetectGateway
	c.DetectOptions = spec.DetectOptions
	return c
}

// said is nil for an empty text, which says nothing.
func said(text *string) *string {
	if text == nil || *text == "" {
		return nil
	}
	return text
}
