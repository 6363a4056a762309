// Package annotation reads what pods and namespaces say of networks, pools and
// routes: the grammar of their annotations, and what it means. Whether the
// networks and pools exist is not its business.
//
// Source: Kubernetes Network Custom Resource Definition De-facto Standard v1.3,
// section 4.1, with the "@interface" that Multus adds; Spiderpool 1.2.
package annotation

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Attachment is one network that a pod asks for.
type Attachment struct {
	Namespace string // empty where the annotation names none
	Name      string // of a NetworkAttachmentDefinition
	Interface string // in the pod; empty where the annotation names none
	// IPs are the addresses that the pod asks for, with the prefix length that was
	// written, else that of one address. Only the JSON form has them.
	IPs []netip.Prefix
}

// Networks reads the value of cniv1.AnnotationNetworks in either of its forms,
// "namespace/name@interface,…" and a JSON list. Attachments that are well-formed
// come with the errors of the others.
func Networks(path *field.Path, text string) ([]Attachment, field.ErrorList) {
	if strings.ContainsAny(text, `[{"`) {
		return networkList(path, text)
	}
	var (
		list []Attachment
		errs field.ErrorList
	)
	for i, item := range strings.Split(text, ",") {
		if strings.TrimSpace(text) == "" {
			break
		}
		a, bad := Network(path.Index(i), item)
		errs = append(errs, bad...)
		if len(bad) == 0 {
			list = append(list, a)
		}
	}
	return list, append(errs, sameInterface(path, list)...)
}

// Network reads one network in the short form, as the value of
// cniv1.AnnotationDefaultNetwork is one. As for Multus, spaces around its parts
// are none of them.
func Network(path *field.Path, text string) (Attachment, field.ErrorList) {
	var a Attachment
	rest := text
	if namespace, name, ok := strings.Cut(text, "/"); ok {
		a.Namespace, rest = strings.TrimSpace(namespace), name
		if a.Namespace == "" {
			return a, field.ErrorList{field.Invalid(path, text, `the namespace is empty: want "name" or "namespace/name"`)}
		}
	}
	name, netdev, named := strings.Cut(rest, "@")
	a.Name, a.Interface = strings.TrimSpace(name), strings.TrimSpace(netdev)
	if named && a.Interface == "" {
		return a, field.ErrorList{field.Invalid(path, text, `no interface after "@": want "name" or "name@interface"`)}
	}
	return a, a.review(path, text)
}

// review checks the names. Where an attachment comes from text, that is the
// value that errors show.
func (a Attachment) review(path *field.Path, value any) field.ErrorList {
	var errs field.ErrorList
	if a.Namespace != "" && len(validation.IsDNS1123Label(a.Namespace)) > 0 {
		errs = append(errs, field.Invalid(path, value, fmt.Sprintf(`namespace %q: want lower-case letters, digits and "-", from and to a letter or digit`, a.Namespace)))
	}
	if len(validation.IsDNS1123Subdomain(a.Name)) > 0 {
		errs = append(errs, field.Invalid(path, value, fmt.Sprintf(`name %q: want lower-case letters, digits, "-" and ".", from and to a letter or digit`, a.Name)))
	}
	if why := badInterface(a.Interface); why != "" {
		errs = append(errs, field.Invalid(path, value, fmt.Sprintf("interface %q: %s", a.Interface, why)))
	}
	return errs
}

// badInterface says why a name can be no interface's; empty where it can, or
// where there is none. The kernel takes "@", and the short form does not.
func badInterface(name string) string {
	const most = 15 // IFNAMSIZ without the NUL
	switch {
	case len(name) > most:
		return fmt.Sprintf("it has %d bytes, and an interface has a name of at most %d", len(name), most)
	case strings.ContainsFunc(name, notInInterfaces), name == ".", name == "..":
		return `want a name without "/", ":", "@" and white space`
	}
	return ""
}

func notInInterfaces(r rune) bool {
	return strings.ContainsRune("/:@", r) || r == utf8.RuneError || unicode.IsSpace(r)
}

// sameInterface finds interfaces that are asked for twice.
func sameInterface(path *field.Path, list []Attachment) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, a := range list {
		if a.Interface != "" && seen[a.Interface] {
			errs = append(errs, field.Duplicate(path.Index(i), a.Interface))
		}
		seen[a.Interface] = true
	}
	return errs
}

// element is an element of the JSON form. Other keys belong to whoever
// implements them.
type element struct {
	Name         string            `json:"name"`
	Namespace    string            `json:"namespace"`
	Interface    string            `json:"interface"`
	IPs          []string          `json:"ips"`
	MAC          string            `json:"mac"`
	GUID         string            `json:"infiniband-guid"`
	DefaultRoute *[]string         `json:"default-route"`
	CNIArgs      map[string]any    `json:"cni-args"`
	PortMappings []json.RawMessage `json:"portMappings"`
	Bandwidth    map[string]any    `json:"bandwidth"`
}

func networkList(path *field.Path, text string) ([]Attachment, field.ErrorList) {
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, field.ErrorList{field.Invalid(path, text, fmt.Sprintf(`is no JSON list: want [{"name": …, "namespace": …}, …] or "namespace/name,…" (%s)`, jsonError(err)))}
	}
	var (
		list   []Attachment
		errs   field.ErrorList
		routed int
	)
	for i, r := range raw {
		at := path.Index(i)
		var e element
		if err := json.Unmarshal(r, &e); err != nil {
			errs = append(errs, field.Invalid(at, string(r), jsonError(err)))
			continue
		}
		bad := e.review(at)
		if e.DefaultRoute != nil {
			if routed++; routed == 2 {
				bad = append(bad, field.Forbidden(at.Child("default-route"), "an element before has one, and only one may"))
			}
		}
		errs = append(errs, bad...)
		if len(bad) == 0 {
			list = append(list, e.attachment())
		}
	}
	return list, append(errs, sameInterface(path, list)...)
}

func (e *element) attachment() Attachment {
	a := Attachment{Namespace: e.Namespace, Name: e.Name, Interface: e.Interface}
	for _, text := range e.IPs {
		if ip, ok := parseIP(text); ok {
			a.IPs = append(a.IPs, ip)
		}
	}
	return a
}

func (e *element) review(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if e.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "the name of a NetworkAttachmentDefinition"))
	} else {
		errs = append(errs, e.attachment().review(at, e.Name)...)
	}
	for i, ip := range e.IPs {
		if _, ok := parseIP(ip); !ok {
			errs = append(errs, field.Invalid(at.Child("ips").Index(i), ip, "want an address, or an address with a prefix length"))
		}
	}
	if mac, err := net.ParseMAC(e.MAC); e.MAC != "" && (err != nil || len(mac) != 6) {
		errs = append(errs, field.Invalid(at.Child("mac"), e.MAC, `want 6 bytes as "02:42:ac:11:00:02"`))
	}
	if guid, err := net.ParseMAC(e.GUID); e.GUID != "" && (err != nil || len(guid) != 8) {
		errs = append(errs, field.Invalid(at.Child("infiniband-guid"), e.GUID, `want 8 bytes as "0c:42:a1:03:00:65:12:34"`))
	}
	if e.DefaultRoute != nil {
		for i, gw := range *e.DefaultRoute {
			if _, err := netip.ParseAddr(gw); err != nil {
				errs = append(errs, field.Invalid(at.Child("default-route").Index(i), gw, "want the address of a gateway"))
			}
		}
	}
	return errs
}

// parseIP reads an address that may have a prefix length. Host bits stay. An IPv4
// address in the form of an IPv6 one is the IPv4 address.
func parseIP(text string) (netip.Prefix, bool) {
	ip, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		ip = netip.PrefixFrom(addr, addr.BitLen())
		if err != nil {
			return netip.Prefix{}, false
		}
	}
	if ip.Addr().Is4In6() {
		ip = netip.PrefixFrom(ip.Addr().Unmap(), ip.Bits()-(128-32))
	}
	return ip, ip.IsValid()
}
