package check

import (
	"fmt"
	"net/netip"
	"slices"

	"railhead/internal/inventory"
)

// The GID types of RoCE. Cards since ConnectX-4 have both and use the second.
const (
	roceV1 = "IB/RoCE v1"
	roceV2 = "RoCE v2"
)

// gidType is the best GID type that a port has.
func gidType(p *inventory.Port) string {
	v2 := func(g inventory.GID) bool { return g.Type == roceV2 }
	if len(p.GIDs) > 0 && !slices.ContainsFunc(p.GIDs, v2) {
		return roceV1
	}
	return roceV2
}

// hasIPGIDs tells whether a port's GID table follows the addresses of netdevs:
// on RoCE, whose GID types the kernel then tells.
func hasIPGIDs(r portRef) bool {
	return r.port.LinkLayer == inventory.Ethernet && r.device.RDMA.Protocol != "iw" && r.port.GIDTableLen > 1
}

func gidMissing(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, r := range n.ports(here) {
		netdev := r.netdev()
		if netdev == nil || !netdev.Up || !hasIPGIDs(r) {
			continue
		}
		for _, a := range netdev.Addresses {
			if hasGID(r.port, a.Addr()) {
				continue
			}
			findings = append(findings, Finding{
				Severity: Error,
				ID:       "gid-missing",
				Object:   r.String(),
				Seen:     fmt.Sprintf("%s has address %s, and none of the %s in use is its %s GID", netdev.Name, a, plural(len(r.port.GIDs), "GID"), gidType(r.port)),
				Why:      "connections from and to this address cannot be made",
				Mend: []string{
					"dmesg | grep -e ib_cache -e " + r.device.RDMA.Name + " # error=-28 means that the GID table is full",
					fmt.Sprintf("ip addr del %s dev %s && ip addr add %s dev %s # makes the kernel add the GID again", a, netdev.Name, a, netdev.Name),
				},
			})
		}
	}
	return findings
}

func hasGID(p *inventory.Port, a netip.Addr) bool {
	for _, g := range p.GIDs {
		if g.Type == gidType(p) && g.Address == a.WithZone("") {
			return true
		}
	}
	return false
}

// gidTableFull warns before an address finds no place in the GID table: each
// takes two entries, one a RoCE version, also those of pods that share the
// device through macvlan or ipvlan.
func gidTableFull(n *Node, _ Wishes) []Finding {
	const perAddress = 2
	const nearly = 0.8
	var findings []Finding
	for _, r := range n.ports(here) {
		used, size := len(r.port.GIDs), r.port.GIDTableLen
		if !hasIPGIDs(r) || float64(used) < nearly*float64(size) {
			continue
		}
		f := Finding{
			Severity: Warning,
			ID:       "gid-table-full",
			Object:   r.String(),
			Seen:     fmt.Sprintf("%d of %d GID table entries are in use, and every address takes %d", used, size, perAddress),
			Why:      "a pod whose address finds no place in the table has a netdev but no RDMA",
			Mend: []string{
				"# run fewer pods that share this device, or give pods VFs, which have GID tables of their own",
				"ip link set dev NETDEV addrgenmode none # a netdev without IPv6 link-local address takes half the entries",
			},
		}
		if size-used < perAddress {
			f.Severity = Error
		}
		findings = append(findings, f)
	}
	return findings
}
