package annotation

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Requests is what an element of the JSON form asks of its network.
type Requests struct {
	IPs          []string                   `json:"ips"`
	MAC          string                     `json:"mac"`
	GUID         string                     `json:"infiniband-guid"`
	DefaultRoute *[]string                  `json:"default-route"`
	IPAMClaim    string                     `json:"ipam-claim-reference"`
	DeviceID     string                     `json:"deviceID"`
	CNIArgs      map[string]json.RawMessage `json:"cni-args"`
	PortMappings []PortMapping              `json:"portMappings"`
	Bandwidth    *Bandwidth                 `json:"bandwidth"`
}

// PortMapping is one port of the node that leads to one of the pod.
type PortMapping struct {
	HostPort      int    `json:"hostPort"`
	ContainerPort int    `json:"containerPort"`
	Protocol      string `json:"protocol"`
	HostIP        string `json:"hostIP,omitempty"`
}

// Bandwidth limits what goes into and out of a pod: rates in bit/s, bursts in bits.
type Bandwidth struct {
	IngressRate  int64 `json:"ingressRate"`
	IngressBurst int64 `json:"ingressBurst"`
	EgressRate   int64 `json:"egressRate"`
	EgressBurst  int64 `json:"egressBurst"`
}

// decode reads an element whose keys are known, and checks it.
func (r *Requests) decode(at *field.Path, raw json.RawMessage) field.ErrorList {
	if err := json.Unmarshal(raw, r); err != nil {
		return field.ErrorList{wrongType(at, raw, err)}
	}
	return r.review(at)
}

func (r *Requests) review(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, ip := range r.IPs {
		if _, ok := parseIP(ip); !ok {
			errs = append(errs, field.Invalid(at.Child("ips").Index(i), ip, "want an address, or an address with a prefix length"))
		}
	}
	if mac, err := net.ParseMAC(r.MAC); r.MAC != "" && (err != nil || len(mac) != 6) {
		errs = append(errs, field.Invalid(at.Child("mac"), r.MAC, `want 6 bytes as "02:42:ac:11:00:02"`))
	}
	if guid, err := net.ParseMAC(r.GUID); r.GUID != "" && (err != nil || len(guid) != 8) {
		errs = append(errs, field.Invalid(at.Child("infiniband-guid"), r.GUID, `want 8 bytes as "0c:42:a1:03:00:65:12:34"`))
	}
	if r.DefaultRoute != nil {
		for i, gw := range *r.DefaultRoute {
			if _, err := netip.ParseAddr(gw); err != nil {
				errs = append(errs, field.Invalid(at.Child("default-route").Index(i), gw, "want the address of a gateway"))
			}
		}
	}
	if len(r.IPs) > 0 && r.IPAMClaim != "" {
		errs = append(errs, field.Forbidden(at.Child("ipam-claim-reference"), fmt.Sprintf("%q with ips %q: the addresses are those of the claim or those listed, want one of the two", r.IPAMClaim, r.IPs)))
	}
	for i := range r.PortMappings {
		errs = append(errs, r.PortMappings[i].review(at.Child("portMappings").Index(i))...)
	}
	if r.Bandwidth != nil {
		errs = append(errs, r.Bandwidth.review(at.Child("bandwidth"))...)
	}
	return errs
}

// wrongType is an error of package json about an element, by its key and value.
func wrongType(at *field.Path, raw json.RawMessage, err error) *field.Error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok || wrong.Field == "" {
		return field.Invalid(at, string(raw), JSONError(err)+`: want an object, such as {"name": …}`)
	}
	keys := strings.Split(wrong.Field, ".")
	var value json.RawMessage
	for key, v := range keysOf(raw) {
		if strings.EqualFold(key, keys[0]) {
			value = v
		}
	}
	return field.Invalid(at.Child(keys[0], keys[1:]...), string(value), fmt.Sprintf("want %s, not %s", wantOf(wrong.Type.Kind()), jsonWord(wrong.Value)))
}

// wantOf says what a value is to be, by what it is read into.
func wantOf(kind reflect.Kind) string {
	switch kind {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// review also puts in the protocol that is meant where none is written.
func (p *PortMapping) review(at *field.Path) field.ErrorList {
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

func (b *Bandwidth) review(at *field.Path) field.ErrorList {
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
