package routing

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// render prints a Result as iproute2 would print it, pod then node, and what
// iproute2 has no word for after it.
func render(r Result) string {
	var b strings.Builder
	b.WriteString("# pod\n")
	renderNamespace(&b, r.Pod)
	if b.WriteString("\n# links\n"); len(r.Links) > 0 {
		for _, l := range r.Links {
			fmt.Fprintf(&b, "%s: mode %q table %d mac %s (%s) qlen %d\n", l.Owner, l.Mode, l.Table, l.MAC, l.MACFrom, l.TxQueueLen)
		}
	}
	for _, a := range r.Addresses {
		fmt.Fprintf(&b, "%s dev %s%s\n", a.Prefix, a.Dev, when(a.NoPrefixRoute, " noprefixroute"))
	}
	for _, s := range r.Pod.Sysctls {
		fmt.Fprintf(&b, "%s = %s%s\n", s.Path, s.Value, when(s.Optional, " (optional)"))
	}
	if v := r.Veth; v != nil {
		fmt.Fprintf(&b, "veth %s %s, node %s %s, mtu %d\n", v.PodName, v.PodMAC, v.HostName, v.HostMAC, v.MTU)
	}
	if m := r.Marks; m != nil {
		fmt.Fprintf(&b, "marks %#x/%#x on %s: %s\n%s", m.Mark, m.Mask, m.Dev, m.Reason, m.NFTables)
	}
	if len(r.Host.Routes)+len(r.Host.Rules) > 0 {
		b.WriteString("\n# node\n")
		renderNamespace(&b, r.Host)
	}
	if len(r.Notes) > 0 {
		b.WriteString("\n# notes\n")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "%s: %s\n", cmp.Or(n.Owner, "pod"), n.Text)
	}
	return b.String()
}

func renderNamespace(b *strings.Builder, n Namespace) {
	for _, f := range families() {
		command := map[family]string{ipv4: "ip", ipv6: "ip -6"}[f]
		renderRules(b, command, f, n.Rules)
		tables := map[uint32][]Route{}
		for _, r := range n.Routes {
			if familyOf(r.Dst.Addr()) == f {
				tables[r.Table] = append(tables[r.Table], r)
			}
		}
		for _, table := range slices.Sorted(func(yield func(uint32) bool) {
			for table := range tables {
				if !yield(table) {
					return
				}
			}
		}) {
			fmt.Fprintf(b, "$ %s route%s\n", command, when(table != TableMain, fmt.Sprintf(" show table %d", table)))
			slices.SortStableFunc(tables[table], func(a, b Route) int {
				return cmp.Or(a.Dst.Addr().Compare(b.Dst.Addr()), cmp.Compare(a.Dst.Bits(), b.Dst.Bits()), cmp.Compare(a.Metric, b.Metric))
			})
			for _, r := range tables[table] {
				b.WriteString(renderRoute(r) + "\n")
			}
		}
	}
	for _, r := range n.Remove {
		fmt.Fprintf(b, "$ ip route del %s table %d\n", renderRoute(r), r.Table)
	}
	for _, x := range n.Neighbours {
		fmt.Fprintf(b, "%s dev %s lladdr %s PERMANENT\n", x.IP, x.Dev, x.MAC)
	}
}

func renderRules(b *strings.Builder, command string, f family, rules []Rule) {
	ours := slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.Family != int(f) })
	if len(ours) == 0 {
		return
	}
	fmt.Fprintf(b, "$ %s rule\n0: from all lookup local\n", command)
	for _, r := range ours {
		from, mark := "all", ""
		if r.From.IsValid() {
			from = r.From.Addr().String()
		}
		if r.Mask != 0 {
			mark = fmt.Sprintf(" fwmark %#x/%#x", r.Mark, r.Mask)
		}
		fmt.Fprintf(b, "%d: from %s%s lookup %d\n", r.Priority, from, mark, r.Table)
	}
	b.WriteString("32766: from all lookup main\n")
	if f == ipv4 {
		b.WriteString("32767: from all lookup default\n")
	}
}

func renderRoute(r Route) string {
	dst := r.Dst.String()
	switch {
	case r.Dst.Bits() == 0:
		dst = "default"
	case r.Dst.IsSingleIP():
		dst = r.Dst.Addr().String()
	}
	return dst + when(r.Via.IsValid(), " via "+r.Via.String()) + " dev " + r.Dev + when(r.Kernel, " proto kernel") +
		when(r.Scope == ScopeLink, " scope link") + whenAddr(r.Src) + when(r.Metric != 0, fmt.Sprintf(" metric %d", r.Metric)) + when(r.OnLink, " onlink")
}

func whenAddr(src netip.Addr) string { return when(src.IsValid(), " src "+src.String()) }

func when(so bool, text string) string {
	if so {
		return text
	}
	return ""
}
