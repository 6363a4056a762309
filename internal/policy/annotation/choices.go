package annotation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// Choice is the pools that a pod chooses for an interface, in the order written,
// with the wildcards of path.Match.
type Choice struct {
	// Interface is "" where the choice is for all interfaces, or for the one at its place.
	Interface  string
	IPv4, IPv6 []string
	// CleanGateway says that the interface gets no default route.
	CleanGateway bool
}

// choice is a Choice as JSON.
type choice struct {
	Interface    *string  `json:"interface,omitempty"`
	IPv4         []string `json:"ipv4,omitempty"`
	IPv6         []string `json:"ipv6,omitempty"`
	CleanGateway bool     `json:"cleangateway,omitempty"`
}

func (c *choice) value() Choice {
	v := Choice{IPv4: c.IPv4, IPv6: c.IPv6, CleanGateway: c.CleanGateway}
	if c.Interface != nil {
		v.Interface = *c.Interface
	}
	return v
}

// Pool reads the value of v2beta1.AnnotationPool: a choice for all interfaces.
// It is good only without errors.
func Pool(at *field.Path, text string) (Choice, field.ErrorList) {
	var c choice
	if begins(text, "[") {
		return Choice{}, field.ErrorList{field.Invalid(at, text, "is a list: "+wantChoice+", or the annotation "+v2beta1.AnnotationPools+" for a list")}
	}
	if err := decode(at, text, wantChoice, &c); err != nil {
		return Choice{}, field.ErrorList{err}
	}
	if c.Interface != nil {
		return Choice{}, field.ErrorList{field.Forbidden(at.Child("interface"), "these pools are for every interface: "+wantChoice)}
	}
	return c.value(), c.review(at, text)
}

// Pools reads the value of v2beta1.AnnotationPools: a choice for each interface,
// all by name, or all by place (eth0 is the first). It is good only without
// errors.
func Pools(at *field.Path, text string) ([]Choice, field.ErrorList) {
	var list []choice
	if begins(text, "{") {
		return nil, field.ErrorList{field.Invalid(at, text, "is an object: "+wantChoices+", or the annotation "+v2beta1.AnnotationPool+" for an object")}
	}
	if err := decode(at, text, wantChoices, &list); err != nil {
		return nil, field.ErrorList{err}
	}
	if len(list) == 0 {
		return nil, field.ErrorList{field.Invalid(at, text, "it is empty: "+wantChoices)}
	}
	if err := policy.TooMany(at, len(list), policy.MostInterfaces, "interfaces"); err != nil {
		return nil, field.ErrorList{err}
	}
	choices := make([]Choice, len(list))
	for i := range list {
		choices[i] = list[i].value()
	}
	return choices, reviewList(at, text, list)
}

func reviewList(at *field.Path, text string, list []choice) field.ErrorList {
	var errs field.ErrorList
	named := func(c choice) bool { return c.Interface != nil }
	if slices.ContainsFunc(list, named) && slices.ContainsFunc(list, func(c choice) bool { return !named(c) }) {
		errs = append(errs, field.Invalid(at, text, `some elements name their interface and some do not: want "interface" in all of them, or in none`))
	}
	seen := map[string]bool{}
	for i, c := range list {
		if c.Interface != nil {
			errs = append(errs, reviewNIC(at.Index(i).Child("interface"), *c.Interface)...)
			if seen[*c.Interface] {
				errs = append(errs, field.Duplicate(at.Index(i).Child("interface"), *c.Interface))
			}
			seen[*c.Interface] = true
		}
		errs = append(errs, c.review(at.Index(i), text)...)
	}
	return errs
}

func (c *choice) review(at *field.Path, text string) field.ErrorList {
	if len(c.IPv4)+len(c.IPv6) == 0 {
		return field.ErrorList{field.Invalid(at, text, "it names nothing: "+wantChoice)}
	}
	return append(reviewEach(at.Child("ipv4"), c.IPv4), reviewEach(at.Child("ipv6"), c.IPv6)...)
}
