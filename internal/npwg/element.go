package npwg

import (
	"encoding/json"
	"net"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/internal/policy/annotation"
)

// Capabilities that a pod asks for, as runtimeConfig names them.
const (
	CapabilityIPs            = "ips"
	CapabilityMAC            = "mac"
	CapabilityInfinibandGUID = "infinibandGUID"
	CapabilityPortMappings   = "portMappings"
	CapabilityBandwidth      = "bandwidth"
)

// selected is a network with what a pod asks of it, which package annotation has
// checked.
func selected(at *field.Path, a annotation.Attachment) Selected {
	e := a.Requests
	s := Selected{
		Namespace: a.Namespace, Name: a.Name, Interface: a.Interface, At: at.String(),
		IPs: a.IPs, IPAMClaim: e.IPAMClaim, DeviceID: e.DeviceID, CNIArgs: e.CNIArgs,
	}
	s.MAC, _ = net.ParseMAC(e.MAC) // nil where there is none
	s.GUID, _ = net.ParseMAC(e.GUID)
	if e.DefaultRoute != nil {
		s.HasDefaultRoute, s.DefaultRoute = true, make([]netip.Addr, len(*e.DefaultRoute))
		for i, text := range *e.DefaultRoute {
			s.DefaultRoute[i], _ = netip.ParseAddr(text)
		}
	}
	s.ask(CapabilityIPs, e.IPs, len(e.IPs) > 0)
	s.ask(CapabilityMAC, e.MAC, e.MAC != "")
	s.ask(CapabilityInfinibandGUID, e.GUID, e.GUID != "")
	s.ask(CapabilityPortMappings, e.PortMappings, len(e.PortMappings) > 0)
	s.ask(CapabilityBandwidth, e.Bandwidth, e.Bandwidth != nil)
	return s
}

// ask adds a request, if it is one.
func (s *Selected) ask(capability string, value any, asked bool) {
	if !asked {
		return
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return // texts and numbers always are JSON
	}
	if s.Requests == nil {
		s.Requests = map[string]json.RawMessage{}
	}
	s.Requests[capability] = raw
}
