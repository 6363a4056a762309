package policy

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// Claim is what an application wants of subnets: for each interface and family
// a pool of its own.
type Claim struct {
	Interfaces []InterfaceClaim // in the order written, each interface once
	Number     AddressNumber
	Reclaim    bool // the pools go when the application goes
}

// InterfaceClaim is what one interface of an application's pods wants.
type InterfaceClaim struct {
	Interface string
	// IPv4 and IPv6 name the subnets that may serve, the first that can does. A
	// family that names none, or that the cluster has switched off, gets no pool.
	IPv4, IPv6 []string

	path *field.Path
}

// AddressNumber is how many addresses a pool has.
type AddressNumber struct {
	Count    int64
	Flexible bool // Count is what comes on top of the pods
}

// For is how many addresses that is for so many pods.
func (n AddressNumber) For(pods int64) int64 {
	switch {
	case !n.Flexible:
		return n.Count
	case pods > math.MaxInt64-n.Count:
		return math.MaxInt64
	}
	return pods + n.Count
}

// String is the number as annotations have it.
func (n AddressNumber) String() string {
	if n.Flexible {
		return "+" + strconv.FormatInt(n.Count, 10)
	}
	return strconv.FormatInt(n.Count, 10)
}

// ClaimOf reads what annotations of a pod or a pod template, found at a path,
// want of subnets; nil if nothing, or nothing that can be understood. The
// annotation for several interfaces wins over the one for eth0.
func ClaimOf(path *field.Path, annotations map[string]string, config Config) (*Claim, Review) {
	var (
		review     Review
		interfaces []InterfaceClaim
	)
	if value, ok := annotations[v2beta1.AnnotationSubnets]; ok {
		path := path.Key(v2beta1.AnnotationSubnets)
		interfaces, review = interfaceClaims(path, value)
		review.Errors = FirstErrors(path, review.Errors)
	} else if value, ok := annotations[v2beta1.AnnotationSubnet]; ok {
		path := path.Key(v2beta1.AnnotationSubnet)
		interfaces, review = singleClaim(path, value)
		review.Errors = FirstErrors(path, review.Errors)
	} else {
		return nil, Review{}
	}
	claim := &Claim{
		Interfaces: interfaces,
		Number:     AddressNumber{Count: int64(config.ClusterSubnetDefaultFlexibleIPNumber), Flexible: true},
		Reclaim:    true,
	}
	if value, ok := annotations[v2beta1.AnnotationPoolNumber]; ok {
		number, err := ParseAddressNumber(value)
		if err != nil {
			review.refuse(path.Key(v2beta1.AnnotationPoolNumber), value, "%v", err)
		}
		claim.Number = number
	}
	if value, ok := annotations[v2beta1.AnnotationPoolReclaim]; ok {
		claim.Reclaim = value != "false"
		if value != "true" && value != "false" {
			review.refuse(path.Key(v2beta1.AnnotationPoolReclaim), value, `want "true" (the pool goes with its application) or "false" (it stays)`)
		}
	}
	if !review.OK() {
		return nil, review
	}
	review.Warnings = append(review.Warnings, claim.drop(config)...)
	return claim, review
}

// ParseAddressNumber reads "N" or "+N".
func ParseAddressNumber(value string) (AddressNumber, error) {
	const want = `want how many addresses the pool has, such as "8", or how many more than pods, such as "+2"`
	digits, flexible := strings.CutPrefix(value, "+")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return AddressNumber{}, errors.New(want)
	}
	count, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return AddressNumber{}, errors.New("is beyond 2^63-1: " + want)
	}
	if count == 0 && !flexible {
		return AddressNumber{}, errors.New("no address serves no pod: " + want)
	}
	return AddressNumber{Count: count, Flexible: flexible}, nil
}

// drop leaves out families that the cluster has switched off, and says so.
func (c *Claim) drop(config Config) []string {
	var warnings []string
	for i := range c.Interfaces {
		claim := &c.Interfaces[i]
		if len(claim.IPv4) > 0 && !config.EnableIPv4 {
			claim.IPv4 = nil
			warnings = append(warnings, claim.path.Child("ipv4").String()+": has no effect, since enableIPv4 is false in ConfigMap "+ConfigMapName)
		}
		if len(claim.IPv6) > 0 && !config.EnableIPv6 {
			claim.IPv6 = nil
			warnings = append(warnings, claim.path.Child("ipv6").String()+": has no effect, since enableIPv6 is false in ConfigMap "+ConfigMapName)
		}
	}
	return warnings
}
