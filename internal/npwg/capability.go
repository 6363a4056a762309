package npwg

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// isNative says whether the agent does the work of a type of plugin itself.
func isNative(pluginType string) bool {
	_, ok := native[pluginType]
	return ok
}

// Can says whether a plugin takes a capability's runtimeConfig: it declares it,
// or the agent does it itself. What a configuration declares false, is not done.
func (p Plugin) Can(capability string) bool {
	if declared, is := p.Capabilities[capability]; is {
		return declared
	}
	return slices.Contains(native[p.Type], capability) ||
		isNative(p.Type) && slices.Contains(nativeIPAM[p.IPAM], capability)
}

// Check says what a pod asks of a network that no plugin of its chain can do. It
// is for all networks of a pod, before any is attached.
func Check(s Selected, c Chain) error {
	var errs []error
	for _, r := range requests {
		value, asked := s.Requests[r.capability]
		if !asked || slices.ContainsFunc(c.Plugins, func(p Plugin) bool { return p.Can(r.capability) }) {
			continue
		}
		errs = append(errs, fmt.Errorf("%s.%s: %s: no plugin of network %s (%s in %s) has the capability: want the network to have %q in the capabilities of one, or no %s here",
			s.At, r.key, value, s, strings.Join(c.types(), ", "), c.From, r.capability, r.key))
	}
	return errors.Join(errs...)
}

// requested is what the pod asks of a network by capability. What the
// kubelet asks for is about the default network alone; the pod's own request
// is stronger.
func requested(s Selected, kubelet map[string]json.RawMessage) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	if s.Default {
		maps.Copy(all, kubelet)
	}
	maps.Copy(all, s.Requests)
	return all
}
