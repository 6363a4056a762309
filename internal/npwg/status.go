package npwg

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// AnnotationStatus of a pod is the state of its networks.
const AnnotationStatus = "k8s.v1.cni.cncf.io/network-status"

// NetworkStatus is an entry of AnnotationStatus: one interface in a pod. Its keys
// and their order are the network-attachment-definition client's, which writes
// "gateway" for the standard's "default-route", and mtu beside it.
type NetworkStatus struct {
	Name       string      `json:"name"` // "namespace/name", or that of the cluster's CNI network
	Interface  string      `json:"interface,omitempty"`
	IPs        []string    `json:"ips,omitempty"` // without a prefix length
	MAC        string      `json:"mac,omitempty"`
	MTU        int         `json:"mtu,omitempty"` // bytes
	Default    bool        `json:"default,omitempty"`
	DNS        StatusDNS   `json:"dns"`
	DeviceInfo *DeviceInfo `json:"device-info,omitempty"`
	Gateway    []string    `json:"gateway,omitempty"` // of its default routes
}

// StatusDNS is what a network says of DNS.
type StatusDNS struct {
	Nameservers []string `json:"nameservers,omitempty"`
	Domain      string   `json:"domain,omitempty"`
	Search      []string `json:"search,omitempty"`
	Options     []string `json:"options,omitempty"`
}

// Attached is a network that was attached.
type Attached struct {
	Selected Selected
	Network  string           // Chain.Name
	Result   *types100.Result // of its chain's last plugin
	Device   *DeviceInfo      // nil without one
}

// Status is the value of AnnotationStatus: the networks in the order given, an
// entry for each interface in the pod, and exactly one of them the default.
func Status(attached []Attached) (string, error) {
	var written []string
	defaults := 0
	for _, a := range attached {
		if a.Result == nil {
			return "", fmt.Errorf("network %s of interface %s has no CNI result: want the result of its last plugin", a.Selected, a.Selected.Interface)
		}
		for _, s := range a.entries() {
			if s.Default {
				defaults++
			}
			text, err := json.MarshalIndent(s, "", "    ") // as the client does
			if err != nil {
				return "", fmt.Errorf("status of network %s: %w", s.Name, err)
			}
			written = append(written, string(text))
		}
	}
	if defaults != 1 {
		return "", fmt.Errorf("%d networks are the pod's default network: want one", defaults)
	}
	return "[" + strings.Join(written, ",") + "]", nil
}

// ParseStatus reads a value of AnnotationStatus.
func ParseStatus(text string) ([]NetworkStatus, error) {
	var list []NetworkStatus
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("annotation %s is no JSON list of networks: %w", AnnotationStatus, err)
	}
	return list, nil
}

// entries are one for each interface that the result has in the sandbox, or one
// without an interface. Gateways and DNS are the result's and so in all of them.
func (a Attached) entries() []NetworkStatus {
	whole := NetworkStatus{Name: a.Selected.String(), DNS: dnsOf(a.Result.DNS), DeviceInfo: a.Device, Gateway: gateways(a.Result.Routes)}
	if a.Selected.Name == "" {
		whole.Name = a.Network
	}
	var list []NetworkStatus
	place := map[int]int{} // by place in the result
	for i, netdev := range a.Result.Interfaces {
		if netdev == nil || netdev.Sandbox == "" {
			continue
		}
		s := whole
		s.Interface, s.MAC, s.MTU = netdev.Name, netdev.Mac, netdev.Mtu
		place[i] = len(list)
		list = append(list, s)
	}
	if len(list) == 0 {
		list = []NetworkStatus{whole}
	}
	gateway := a.addresses(list, place)
	if a.Selected.Default {
		list[max(gateway, 0)].Default = true
	}
	return list
}

// addresses puts the result's addresses into entries, whose place is that of their
// interface in the result. It returns the first one that has a gateway of its
// own, or -1. Where the result has one interface at most, all addresses are
// that one's; where an address does not say whose it is, it is the last one's.
func (a Attached) addresses(list []NetworkStatus, place map[int]int) (gateway int) {
	gateway = -1
	one := len(a.Result.Interfaces) <= 1 || len(place) == 0
	for _, ip := range a.Result.IPs {
		if ip == nil || ip.Address.IP == nil {
			continue
		}
		at := len(list) - 1
		if ip.Interface != nil && !one {
			i, inside := place[*ip.Interface]
			if !inside {
				continue
			}
			if at = i; gateway < 0 && ip.Gateway != nil {
				gateway = i
			}
		}
		list[at].IPs = append(list[at].IPs, ip.Address.IP.String())
	}
	return gateway
}

// gateways are those of default routes. A route straight onto an interface has none.
func gateways(routes []*types.Route) []string {
	var list []string
	for _, r := range routes {
		if r == nil || r.GW == nil {
			continue
		}
		if ones, _ := r.Dst.Mask.Size(); ones == 0 && (r.Dst.IP == nil || r.Dst.IP.IsUnspecified()) {
			list = append(list, r.GW.String())
		}
	}
	return list
}

func dnsOf(d types.DNS) StatusDNS {
	return StatusDNS{Nameservers: d.Nameservers, Domain: d.Domain, Search: d.Search, Options: d.Options}
}

// StatusPatch is a merge patch (application/merge-patch+json) of a pod that sets
// its status annotation, and nothing where the pod of that name is another one by
// now: the API server refuses a UID that is not the pod's. A merge patch, because
// a JSON patch cannot add to annotations that are not there.
func StatusPatch(uid, status string) ([]byte, error) {
	if uid == "" {
		return nil, errors.New("patch of annotation " + AnnotationStatus + ": no UID of the pod: want it, or the patch could be another pod's of that name")
	}
	var patch struct {
		Metadata struct {
			UID         string            `json:"uid"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	patch.Metadata.UID, patch.Metadata.Annotations = uid, map[string]string{AnnotationStatus: status}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("patch of annotation %s: %w", AnnotationStatus, err)
	}
	return body, nil
}
