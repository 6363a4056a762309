package annotation

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/internal/policy"
)

// Routes reads the value of v2beta1.AnnotationRoutes, in the order written, with
// host bits of destinations cleared. Routes that are well-formed come with the
// errors of the others.
func Routes(at *field.Path, text string) ([]policy.Route, field.ErrorList) {
	var written []struct {
		Dst string `json:"dst"`
		Gw  string `json:"gw"`
	}
	if err := decode(at, text, wantRoutes, &written); err != nil {
		return nil, field.ErrorList{err}
	}
	var (
		routes []policy.Route
		errs   field.ErrorList
	)
	for i, w := range written {
		r, bad := route(at.Index(i), w.Dst, w.Gw)
		if errs = append(errs, bad...); len(bad) == 0 {
			routes = append(routes, r)
		}
	}
	return routes, errs
}

func route(at *field.Path, dstText, gwText string) (policy.Route, field.ErrorList) {
	var errs field.ErrorList
	dst, errDst := netip.ParsePrefix(dstText)
	if errDst != nil {
		errs = append(errs, field.Invalid(at.Child("dst"), dstText, "want a CIDR, such as 10.2.0.0/16"))
	}
	gw, errGw := netip.ParseAddr(gwText)
	if errGw != nil {
		errs = append(errs, field.Invalid(at.Child("gw"), gwText, "want an address"))
	}
	if errDst == nil && errGw == nil && dst.Addr().Is4() != gw.Is4() {
		errs = append(errs, field.Invalid(at.Child("gw"), gwText, fmt.Sprintf("want an address of the family of %s", dstText)))
	}
	return policy.Route{Dst: dst.Masked(), Gw: gw}, errs
}
