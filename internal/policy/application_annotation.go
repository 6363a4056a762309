package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// subnetNames is one element of the annotation.
type subnetNames struct {
	Interface string   `json:"interface"`
	IPv4      []string `json:"ipv4"`
	IPv6      []string `json:"ipv6"`
}

// singleClaim reads {"ipv4":[],"ipv6":[]}, which is for eth0.
func singleClaim(path *field.Path, value string) ([]InterfaceClaim, Review) {
	var (
		review Review
		names  subnetNames
	)
	if err := decodeAnnotation(value, &names); err != nil {
		review.refuse(path, value, "%s", misread(err, `want JSON such as {"ipv4":["subnet-a"],"ipv6":[]}`, "list", v2beta1.AnnotationSubnets))
		return nil, review
	}
	if names.Interface == "" {
		names.Interface = "eth0"
	}
	return reviewClaims(value, []subnetNames{names}, func(int) *field.Path { return path })
}

// interfaceClaims reads [{"interface","ipv4":[],"ipv6":[]}].
func interfaceClaims(path *field.Path, value string) ([]InterfaceClaim, Review) {
	var (
		review Review
		list   []subnetNames
	)
	if err := decodeAnnotation(value, &list); err != nil {
		review.refuse(path, value, "%s", misread(err, `want JSON such as [{"interface":"eth0","ipv4":["subnet-a"],"ipv6":[]}]`, "object", v2beta1.AnnotationSubnet))
		return nil, review
	}
	if len(list) == 0 {
		review.refuse(path, value, "names no interface: want one or more, or no annotation")
		return nil, review
	}
	if err := TooMany(path, len(list), MostInterfaces, "interfaces"); err != nil {
		review.Errors = append(review.Errors, err)
		return nil, review
	}
	named := 0
	for _, names := range list {
		if names.Interface != "" {
			named++
		}
	}
	if named != 0 && named != len(list) {
		review.refuse(path, value, "%d of %d elements name an interface: want all of them or none, which then are eth0, net1, net2 and so on", named, len(list))
		return nil, review
	}
	for i := range list {
		switch {
		case named != 0:
		case i == 0:
			list[i].Interface = "eth0"
		default:
			list[i].Interface = "net" + strconv.Itoa(i)
		}
	}
	return reviewClaims(value, list, path.Index)
}

// reviewClaims holds what was read against the rules.
func reviewClaims(value string, list []subnetNames, at func(int) *field.Path) ([]InterfaceClaim, Review) {
	var (
		review Review
		claims []InterfaceClaim
		seen   = map[string]bool{}
	)
	for i, names := range list {
		claim := InterfaceClaim{Interface: names.Interface, IPv4: names.IPv4, IPv6: names.IPv6, path: at(i)}
		if err := interfaceName(names.Interface); err != nil {
			review.refuse(claim.path.Child("interface"), names.Interface, "%v", err)
		}
		if seen[names.Interface] {
			review.refuse(claim.path.Child("interface"), names.Interface, "is named twice: want each interface once")
		}
		seen[names.Interface] = true
		if len(names.IPv4)+len(names.IPv6) == 0 {
			review.refuse(claim.path, value, "names no subnet for %s: want one or more in ipv4 or ipv6", names.Interface)
		}
		review.add(subnetList(claim.path.Child("ipv4"), names.IPv4))
		review.add(subnetList(claim.path.Child("ipv6"), names.IPv6))
		claims = append(claims, claim)
	}
	return claims, review
}

// subnetList holds names of subnets against the rules of names.
func subnetList(path *field.Path, names []string) Review {
	var review Review
	seen := map[string]bool{}
	for i, name := range names {
		if faults := validation.IsDNS1123Subdomain(name); len(faults) != 0 {
			review.refuse(path.Index(i), name, "is no name of a SpiderSubnet: want one of the cluster")
		} else if seen[name] {
			review.refuse(path.Index(i), name, "is named twice: want each subnet once")
		}
		seen[name] = true
	}
	return review
}

// interfaceName says why a name can be no interface's. It goes into a label.
func interfaceName(name string) error {
	if name == "" || len(name) > 15 || len(validation.IsValidLabelValue(name)) != 0 {
		return errors.New(`is no name of an interface: want 1 to 15 letters, digits, ".", "_" or "-", such as eth0 or net1`)
	}
	return nil
}

// decodeAnnotation reads one JSON value with known fields only.
func decodeAnnotation(value string, into any) error {
	decoder := json.NewDecoder(bytes.NewReader([]byte(value)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// misread says why an annotation is not as wanted. A value of the other shape
// is one for another annotation.
func misread(err error, want, otherShape, other string) string {
	if _, syntax := errors.AsType[*json.SyntaxError](err); syntax {
		return fmt.Sprintf("is no JSON: %s (%v)", want, err)
	}
	text := fmt.Sprintf("%v: %s", annotationError(err), want)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field == "" && jsonWord(wrong.Value) == otherShape {
		text += "; " + withArticle(otherShape) + " is for the annotation " + other
	}
	return text
}

// annotationError says in plain words what encoding/json found.
func annotationError(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf("%s is %s, want %s", wrong.Field, withArticle(jsonWord(wrong.Value)), withArticle(jsonWord(wrong.Type.Kind().String())))
	case errors.As(err, &wrong):
		return fmt.Errorf("is %s, want %s", withArticle(jsonWord(wrong.Value)), withArticle(jsonWord(wrong.Type.Kind().String())))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends too early")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// jsonWord is a Go kind, or what encoding/json calls a value, in words of users.
func jsonWord(kind string) string {
	switch kind {
	case "slice", "array":
		return "list"
	case "bool":
		return "boolean"
	case "struct":
		return "object"
	}
	return kind
}

// withArticle is "a list" or "an object".
func withArticle(word string) string {
	if word == "object" {
		return "an " + word
	}
	return "a " + word
}
