package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach"
)

// render is what a golden file says of an interface: what is not said is zero.
func render(i attach.Interface) string {
	var b strings.Builder
	line := func(name string, is bool, value any) {
		if is {
			fmt.Fprintf(&b, "  %s: %v\n", name, value)
		}
	}
	line("name", true, fmt.Sprintf("%s, rail %d, default network's %t", i.Name, i.Rail, i.IsDefaultNetwork))
	kind := string(i.Link.Kind)
	if i.Link.Kind == attach.Foreign {
		kind = "another's"
	}
	line("kind", true, strings.TrimSpace(kind+" "+i.Link.Mode))
	line("foreign", i.Foreign, true)
	line("parent", i.Link.Parent.Name != "", parent(i.Link.Parent))
	line("masters", i.Masters != nil, i.Masters)
	line("in container", i.Link.InContainer, true)
	line("device", !cmp.Equal(i.Link.Device, attach.Device{}), fmt.Sprintf("%+v", i.Link.Device))
	line("vlan", i.Link.VLANID != 0, i.Link.VLANID)
	line("mtu", i.Link.MTU != 0, i.Link.MTU)
	line("mac", i.MAC != nil, i.MAC)
	line("shares mac", i.SharesMAC, true)
	line("tuning", !cmp.Equal(i.Tuning, attach.Tuning{}), tuned(i.Tuning))
	if c := i.Coordinator; c != nil {
		line("coordinator", true, fmt.Sprintf("%s, tunes routes %t, default route over %q (%s)", c.Mode, c.TunePodRoutes, c.DefaultRouteNIC, c.DefaultRouteFrom))
	}
	return b.String()
}

func parent(p attach.Parent) string {
	text := p.Name
	if p.Members != nil {
		text += fmt.Sprintf(" on %v", p.Members)
	}
	if p.VLANID != 0 {
		text += fmt.Sprintf(", VLAN %d", p.VLANID)
	}
	if p.Bond != nil {
		text += fmt.Sprintf(", bond %s of mode %s %v", p.Bond.Name, p.Bond.Mode, pairs(p.Bond.Options))
	}
	return text
}

func tuned(t attach.Tuning) string {
	text := fmt.Sprintf("sysctls %v mtu %d queue %d", pairs(t.Sysctls), t.MTU, t.TxQueueLen)
	if t.Promisc != nil {
		text += fmt.Sprintf(" promisc %t", *t.Promisc)
	}
	if t.AllMulti != nil {
		text += fmt.Sprintf(" allmulti %t", *t.AllMulti)
	}
	return text
}

func pairs(all map[string]string) []string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		list = append(list, key+"="+all[key])
	}
	return list
}
