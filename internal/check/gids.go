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

// hasIPGIDs tells whether a port's GID table follows the addresses of netdevs.
// That of a port which carries raw Ethernet only (an eswitch, or RoCE switched
// off) does not.
func hasIPGIDs(r portRef) bool {
	raw := r.device.RDMA.Index != nil && r.device.RDMA.Protocol != "roce"
	return r.port.LinkLayer == inventory.Ethernet && !raw && r.port.GIDTableLen > 1
}

func gidMissing(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, r := range n.ports(here) {
		netdev := r.netdev()
		if netdev == nil || !netdev.Up || !hasIPGIDs(r) || freeGIDs(r.port) < gidsPerAddress {
			continue
		}
		var without []string
		for _, a := range netdev.Addresses {
			if !hasGID(r.port, a.Addr()) {
				without = append(without, a.String())
			}
		}
		if len(without) == 0 {
			continue
		}
		findings = append(findings, Finding{
			Severity: Error,
			ID:       "gid-missing",
			Object:   r.String(),
			Seen: fmt.Sprintf("%s has addresses of which none of the %s in use is the %s GID: %s",
				netdev.Name, plural(len(r.port.GIDs), "GID"), gidType(r.port), firstFew(without)),
			Why: "connections from and to such an address cannot be made",
			Mend: []string{
				"dmesg | grep -e ib_cache -e " + r.device.RDMA.Name + " # why the kernel did not add them",
				fmt.Sprintf("ip addr del %s dev %s && ip addr add %s dev %s # makes the kernel add the GID again; routes of the address go too",
					without[0], netdev.Name, without[0], netdev.Name),
			},
		})
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

// gidsPerAddress is how many entries of the GID table an address takes: one a
// RoCE version.
const gidsPerAddress = 2

func freeGIDs(p *inventory.Port) int { return p.GIDTableLen - len(p.GIDs) }

// gidTableFull warns before an address finds no place in the GID table, also
// one of a pod that shares the device through macvlan or ipvlan.
func gidTableFull(n *Node, _ Wishes) []Finding {
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
			Seen:     fmt.Sprintf("%d of %d GID table entries are in use, and every address takes %d", used, size, gidsPerAddress),
			Why:      "a pod whose address finds no place in the table has a netdev but no RDMA",
			Mend: []string{
				"# run fewer pods that share this device, or give pods VFs, which have GID tables of their own",
				"# in the pods: ip link set dev NETDEV addrgenmode none, so that no IPv6 link-local address takes entries",
			},
		}
		if freeGIDs(r.port) < gidsPerAddress {
			f.Severity = Error
		}
		findings = append(findings, f)
	}
	return findings
}
