package routing

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// elementCIDRs are what a network may say of the cluster's CIDRs.
type elementCIDRs struct {
	OverlayPodCIDR []string `json:"overlayPodCIDR"`
	ServiceCIDR    []string `json:"serviceCIDR"`
}

// readElement reads a coordinator's configuration in a chain. Empty texts say
// nothing; keys that neither we nor Spiderpool nor CNI know are refused.
func readElement(text json.RawMessage) (spec v2beta1.CoordinatorSpec, cidrs elementCIDRs, err error) {
	if len(text) == 0 {
		return spec, cidrs, nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return spec, cidrs, unreadable(err)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.ContainsFunc(elementKeys, func(known string) bool { return strings.EqualFold(known, key) }) {
			return spec, cidrs, fmt.Errorf("unknown field %q: did you mean %s? There are %s",
				key, policy.Nearest(key, elementKeys)[0], strings.Join(slices.Sorted(slices.Values(elementKeys)), ", "))
		}
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return spec, cidrs, unreadable(err)
	}
	if err := json.Unmarshal(text, &cidrs); err != nil {
		return spec, cidrs, unreadable(err)
	}
	for _, said := range []**string{&spec.Mode, &spec.PodDefaultRouteNIC, &spec.PodMACPrefix, &spec.VethLinkAddress} {
		if *said != nil && **said == "" {
			*said = nil
		}
	}
	return spec, cidrs, nil
}

// unreadable says what a JSON value should have been.
func unreadable(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Errorf("%s is a %s: want a %s", wrong.Field, wrong.Value, wrong.Type)
	}
	return fmt.Errorf("want a JSON object: %w", err)
}
