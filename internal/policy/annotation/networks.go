// Package annotation reads what pods and namespaces say of networks, pools and
// routes: the grammar of their annotations, and what it means. Whether the
// networks and pools exist is not its business.
//
// Source: Kubernetes Network Custom Resource Definition De-facto Standard v1.3,
// section 4.1, with the "@interface" that Multus adds; Spiderpool 1.2.
package annotation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/internal/policy"
)

// Attachment is one network that a pod asks for.
type Attachment struct {
	Namespace string // empty where the annotation names none
	Name      string // of a NetworkAttachmentDefinition
	Interface string // in the pod; empty where the annotation names none
	// IPs are the addresses that the pod asks for, with the prefix length that was
	// written, else that of one address. Only the JSON form has them.
	IPs      []netip.Prefix
	Requests Requests // as written; the short form has none
}

// Networks reads the value of cniv1.AnnotationNetworks in either of its forms,
// "namespace/name@interface,…" and a JSON list. Attachments that are well-formed
// come with the first errors of the others; of more than policy.MostNetworks none
// does.
func Networks(path *field.Path, text string) ([]Attachment, field.ErrorList) {
	read := shortList
	if isJSON(text) {
		read = networkList
	}
	list, errs := read(path, text)
	return list, policy.FirstErrors(path, errs)
}

// shortList reads the short form.
func shortList(path *field.Path, text string) ([]Attachment, field.ErrorList) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	items := strings.Split(text, ",")
	if err := tooMany(path, len(items)); err != nil {
		return nil, field.ErrorList{err}
	}
	var (
		list []Attachment
		errs field.ErrorList
	)
	for i, item := range items {
		a, bad := network(path.Index(i), item)
		errs = append(errs, bad...)
		if len(bad) == 0 {
			list = append(list, a)
		}
	}
	return list, append(errs, sameInterface(path, list)...)
}

func tooMany(path *field.Path, count int) *field.Error {
	return policy.TooMany(path, count, policy.MostNetworks, "networks")
}

// DefaultNetwork reads the value of cniv1.AnnotationDefaultNetwork: one network, in
// either of the forms.
func DefaultNetwork(path *field.Path, text string) (Attachment, field.ErrorList) {
	list, errs := Networks(path, text)
	switch {
	case len(errs) > 0:
		return Attachment{}, errs
	case len(list) != 1:
		return Attachment{}, policy.FirstErrors(path, field.ErrorList{field.Invalid(path, text, fmt.Sprintf(`names %d networks: want one, as "namespace/name" or [{"name": …, "namespace": …}]`, len(list)))})
	}
	return list[0], nil
}

// network reads one network in the short form. As for Multus, spaces around its
// parts are none of them.
func network(path *field.Path, text string) (Attachment, field.ErrorList) {
	var a Attachment
	if strings.TrimSpace(text) == "" {
		return a, field.ErrorList{field.Invalid(path, text, `names no network: want "name" or "namespace/name" before and after each ","`)}
	}
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
	return a, a.review(func(string, string) (*field.Path, string) { return path, text })
}

// review checks the names. where says for a key and its value where that stands, and
// what is written there.
func (a Attachment) review(where func(key, value string) (*field.Path, string)) field.ErrorList {
	var errs field.ErrorList
	refuse := func(key, value, why string) {
		path, text := where(key, value)
		errs = append(errs, field.Invalid(path, text, fmt.Sprintf("%s %q: %s", key, value, why)))
	}
	if a.Namespace != "" && len(validation.IsDNS1123Label(a.Namespace)) > 0 {
		refuse("namespace", a.Namespace, `want lower-case letters, digits and "-", from and to a letter or digit`)
	}
	if len(validation.IsDNS1123Subdomain(a.Name)) > 0 {
		refuse("name", a.Name, `want lower-case letters, digits, "-" and ".", from and to a letter or digit`)
	}
	if why := badInterface(a.Interface); why != "" {
		refuse("interface", a.Interface, why)
	}
	return errs
}

// badInterface says why a name can be no interface's; empty where it can, or
// where there is none. The kernel takes "@", and the short form does not; it puts a
// number in the place of "%d", and control characters would end in terminals.
func badInterface(name string) string {
	const most = 15 // IFNAMSIZ without the NUL
	switch {
	case len(name) > most:
		return fmt.Sprintf("it has %d bytes, and an interface has a name of at most %d", len(name), most)
	case strings.ContainsFunc(name, notInInterfaces), name == ".", name == "..":
		return `want a name without "/", ":", "@", "%", white space and control characters`
	}
	return ""
}

func notInInterfaces(r rune) bool {
	return strings.ContainsRune("/:@%", r) || r == utf8.RuneError || unicode.IsSpace(r) || unicode.IsControl(r)
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

// element is what an element of the JSON form says of which network it means.
type element struct {
	Name         string `json:"name"`
	Namespace    string `json:"namespace"`
	Interface    string `json:"interface"`
	OldInterface string `json:"interfaceRequest"`
}

// isJSON says whether a value is in the JSON form, as Multus tells it.
func isJSON(text string) bool { return strings.ContainsAny(text, `[{"`) }

func networkList(path *field.Path, text string) ([]Attachment, field.ErrorList) {
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, field.ErrorList{field.Invalid(path, text, fmt.Sprintf(`is no JSON list: want [{"name": …, "namespace": …}, …] or "namespace/name,…" (%s)`, JSONError(err)))}
	}
	if err := tooMany(path, len(raw)); err != nil {
		return nil, field.ErrorList{err}
	}
	var (
		list   []Attachment
		errs   field.ErrorList
		routed int
	)
	for i, r := range raw {
		at := path.Index(i)
		e, requests, bad := readElement(at, r)
		if requests.DefaultRoute != nil {
			if routed++; routed == 2 {
				bad = append(bad, field.Forbidden(at.Child("default-route"), "an element before has one, and only one may"))
			}
		}
		errs = append(errs, bad...)
		if len(bad) == 0 {
			list = append(list, e.attachment(requests))
		}
	}
	return list, append(errs, sameInterface(path, list)...)
}

// readElement reads an element. It is good only without errors.
func readElement(at *field.Path, raw json.RawMessage) (e element, requests Requests, errs field.ErrorList) {
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, requests, field.ErrorList{wrongType(at, raw, err)}
	}
	errs = append(e.review(at), requests.decode(at, raw)...)
	return e, requests, append(errs, UnknownKeys(at, raw)...)
}

func (e *element) attachment(requests Requests) Attachment {
	a := Attachment{Namespace: e.Namespace, Name: e.Name, Interface: cmp.Or(e.Interface, e.OldInterface), Requests: requests}
	for _, text := range requests.IPs {
		if ip, ok := parseIP(text); ok {
			a.IPs = append(a.IPs, ip)
		}
	}
	return a
}

func (e *element) review(at *field.Path) field.ErrorList {
	if e.Name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "the name of a NetworkAttachmentDefinition")}
	}
	return e.attachment(Requests{}).review(func(key, value string) (*field.Path, string) { return at.Child(key), value })
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
