package npwg

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

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

// element is what an element of the JSON form says beyond names and addresses,
// which package annotation has checked, as it has the MAC, the GUID and gateways.
type element struct {
	IPs          []string                   `json:"ips"`
	MAC          string                     `json:"mac"`
	GUID         string                     `json:"infiniband-guid"`
	DefaultRoute *[]netip.Addr              `json:"default-route"`
	IPAMClaim    string                     `json:"ipam-claim-reference"`
	DeviceID     string                     `json:"deviceID"`
	CNIArgs      map[string]json.RawMessage `json:"cni-args"`
	PortMappings []portMapping              `json:"portMappings"`
	Bandwidth    *bandwidth                 `json:"bandwidth"`
}

// portMapping is one port of the node that leads to one of the pod.
type portMapping struct {
	HostPort      int    `json:"hostPort"`
	ContainerPort int    `json:"containerPort"`
	Protocol      string `json:"protocol"`
	HostIP        string `json:"hostIP,omitempty"`
}

// bandwidth limits what goes into and out of a pod: rates in bit/s, bursts in bits.
type bandwidth struct {
	IngressRate  int64 `json:"ingressRate"`
	IngressBurst int64 `json:"ingressBurst"`
	EgressRate   int64 `json:"egressRate"`
	EgressBurst  int64 `json:"egressBurst"`
}

func (e *element) decode(at *field.Path, raw []byte) field.ErrorList {
	err := json.Unmarshal(raw, e)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		keys := strings.Split(wrong.Field, ".")
		return field.ErrorList{field.Invalid(at.Child(keys[0], keys[1:]...), wrong.Value, "want "+wantOf(wrong.Type.String()))}
	} else if err != nil {
		return field.ErrorList{field.Invalid(at, string(raw), err.Error())}
	}
	return e.review(at)
}

// wantOf says what a key's value is to be, by the type that it is read into.
func wantOf(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	case kind == "string":
		return "a text"
	case strings.HasPrefix(kind, "[]"):
		return "a list"
	}
	return "a JSON object"
}

func (e *element) review(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(e.IPs) > 0 && e.IPAMClaim != "" {
		errs = append(errs, field.Forbidden(at.Child("ipam-claim-reference"), fmt.Sprintf("%q with ips %q: the addresses are those of the claim or those listed, want one of the two", e.IPAMClaim, e.IPs)))
	}
	for i := range e.PortMappings {
		errs = append(errs, e.PortMappings[i].review(at.Child("portMappings").Index(i))...)
	}
	if e.Bandwidth != nil {
		errs = append(errs, e.Bandwidth.review(at.Child("bandwidth"))...)
	}
	return errs
}

// review also puts in the protocol that is meant where none is written.
func (p *portMapping) review(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, port := range []struct {
		key    string
		number int
	}{{"hostPort", p.HostPort}, {"containerPort", p.ContainerPort}} {
		if port.number < 1 || port.number > 65535 {
			errs = append(errs, field.Invalid(at.Child(port.key), port.number, "want a port, 1 to 65535"))
		}
	}
	if p.Protocol == "" {
		p.Protocol = "tcp"
	}
	if known := []string{"tcp", "udp", "sctp"}; !slices.Contains(known, strings.ToLower(p.Protocol)) {
		errs = append(errs, field.NotSupported(at.Child("protocol"), p.Protocol, known))
	}
	if _, err := netip.ParseAddr(p.HostIP); p.HostIP != "" && err != nil {
		errs = append(errs, field.Invalid(at.Child("hostIP"), p.HostIP, "want an address of the node, or none"))
	}
	return errs
}

func (b *bandwidth) review(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, way := range []struct {
		name        string
		rate, burst int64
	}{{"ingress", b.IngressRate, b.IngressBurst}, {"egress", b.EgressRate, b.EgressBurst}} {
		if way.rate < 0 {
			errs = append(errs, field.Invalid(at.Child(way.name+"Rate"), way.rate, "want bits a second, 0 or more"))
		}
		if way.burst < 0 {
			errs = append(errs, field.Invalid(at.Child(way.name+"Burst"), way.burst, "want bits, 0 or more"))
		}
		if way.burst > 0 && way.rate == 0 {
			errs = append(errs, field.Required(at.Child(way.name+"Rate"), fmt.Sprintf("%sBurst is %d, and a burst needs its rate", way.name, way.burst)))
		}
	}
	return errs
}

// selected is an element that was reviewed.
func (e *element) selected(a annotation.Attachment) Selected {
	s := Selected{
		Namespace: a.Namespace, Name: a.Name, Interface: a.Interface, IPs: a.IPs,
		IPAMClaim: e.IPAMClaim, DeviceID: e.DeviceID, CNIArgs: e.CNIArgs,
	}
	s.MAC, _ = net.ParseMAC(e.MAC) // nil where there is none
	s.GUID, _ = net.ParseMAC(e.GUID)
	if e.DefaultRoute != nil {
		s.HasDefaultRoute, s.DefaultRoute = true, *e.DefaultRoute
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
