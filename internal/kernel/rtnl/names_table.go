package rtnl

import (
	"strconv"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// name returns the name of a value, or the value in decimal.
func name(names map[uint32]string, v uint32) string {
	if s, ok := names[v]; ok {
		return s
	}
	return strconv.FormatUint(uint64(v), 10)
}

// flagNames returns the names of the bits that are set, the lowest first, and
// the value of those without a name in decimal.
func flagNames(names map[uint32]string, v uint32) []string {
	var set []string
	for bit := uint32(1); bit != 0; bit <<= 1 {
		if v&bit != 0 {
			set = append(set, name(names, bit))
		}
	}
	return set
}

// typeName returns the name of a request.
func typeName(typ netlink.HeaderType) string { return name(requests, uint32(typ)) }

var requests = map[uint32]string{
	unix.RTM_GETLINK:  "RTM_GETLINK",
	unix.RTM_GETADDR:  "RTM_GETADDR",
	unix.RTM_GETROUTE: "RTM_GETROUTE",
	unix.RTM_GETRULE:  "RTM_GETRULE",
	unix.RTM_GETNEIGH: "RTM_GETNEIGH",
	unix.RTM_GETDCB:   "RTM_GETDCB",
	unix.RTM_NEWLINK:  "RTM_NEWLINK",
	unix.RTM_SETLINK:  "RTM_SETLINK",
	unix.RTM_DELLINK:  "RTM_DELLINK",
	unix.RTM_NEWADDR:  "RTM_NEWADDR",
	unix.RTM_DELADDR:  "RTM_DELADDR",
	unix.RTM_NEWROUTE: "RTM_NEWROUTE",
	unix.RTM_DELROUTE: "RTM_DELROUTE",
	unix.RTM_NEWRULE:  "RTM_NEWRULE",
	unix.RTM_DELRULE:  "RTM_DELRULE",
	unix.RTM_NEWNEIGH: "RTM_NEWNEIGH",
	unix.RTM_DELNEIGH: "RTM_DELNEIGH",
}

// Families, as `ip` writes them.
var families = map[uint32]string{
	unix.AF_INET:  "inet",
	unix.AF_INET6: "inet6",
}

// RFC 2863 states, as /sys/class/net/*/operstate writes them: net/core/net-sysfs.c.
var operStates = map[uint32]string{
	0: "unknown",
	1: "notpresent",
	2: "down",
	3: "lowerlayerdown",
	4: "testing",
	5: "dormant",
	6: "up",
}

// BOND_MODE_… of include/uapi/linux/if_bonding.h, as the bonding driver writes them.
var bondModes = map[uint32]string{
	0: "balance-rr",
	1: "active-backup",
	2: "balance-xor",
	3: "broadcast",
	4: "802.3ad",
	5: "balance-tlb",
	6: "balance-alb",
}

// MACVLAN_MODE_… of include/uapi/linux/if_link.h.
var macvlanModes = map[uint32]string{
	1:  "private",
	2:  "vepa",
	4:  "bridge",
	8:  "passthru",
	16: "source",
}

// IPVLAN_MODE_… of include/uapi/linux/if_link.h.
var ipvlanModes = map[uint32]string{
	0: "l2",
	1: "l3",
	2: "l3s",
}

// IFLA_VF_LINK_STATE_… of include/uapi/linux/if_link.h.
var vfLinkStates = map[uint32]string{
	unix.IFLA_VF_LINK_STATE_AUTO:    "auto",
	unix.IFLA_VF_LINK_STATE_ENABLE:  "enable",
	unix.IFLA_VF_LINK_STATE_DISABLE: "disable",
}

// Ethertypes of a VLAN tag.
var vlanProtocols = map[uint32]string{
	unix.ETH_P_8021Q:  "802.1Q",
	unix.ETH_P_8021AD: "802.1ad",
}

// RT_SCOPE_… of include/uapi/linux/rtnetlink.h; administrators may add others.
var scopes = map[uint32]string{
	unix.RT_SCOPE_UNIVERSE: "global",
	unix.RT_SCOPE_SITE:     "site",
	unix.RT_SCOPE_LINK:     "link",
	unix.RT_SCOPE_HOST:     "host",
	unix.RT_SCOPE_NOWHERE:  "nowhere",
}

// RTN_… of include/uapi/linux/rtnetlink.h.
var routeTypes = map[uint32]string{
	unix.RTN_UNSPEC:      "unspec",
	unix.RTN_UNICAST:     "unicast",
	unix.RTN_LOCAL:       "local",
	unix.RTN_BROADCAST:   "broadcast",
	unix.RTN_ANYCAST:     "anycast",
	unix.RTN_MULTICAST:   "multicast",
	unix.RTN_BLACKHOLE:   "blackhole",
	unix.RTN_UNREACHABLE: "unreachable",
	unix.RTN_PROHIBIT:    "prohibit",
	unix.RTN_THROW:       "throw",
	unix.RTN_NAT:         "nat",
	unix.RTN_XRESOLVE:    "xresolve",
}

// RTPROT_… of include/uapi/linux/rtnetlink.h; administrators may add others.
var routeProtocols = map[uint32]string{
	unix.RTPROT_UNSPEC:     "unspec",
	unix.RTPROT_REDIRECT:   "redirect",
	unix.RTPROT_KERNEL:     "kernel",
	unix.RTPROT_BOOT:       "boot",
	unix.RTPROT_STATIC:     "static",
	unix.RTPROT_GATED:      "gated",
	unix.RTPROT_RA:         "ra",
	unix.RTPROT_MRT:        "mrt",
	unix.RTPROT_ZEBRA:      "zebra",
	unix.RTPROT_BIRD:       "bird",
	unix.RTPROT_DNROUTED:   "dnrouted",
	unix.RTPROT_XORP:       "xorp",
	unix.RTPROT_NTK:        "ntk",
	unix.RTPROT_DHCP:       "dhcp",
	unix.RTPROT_MROUTED:    "mrouted",
	unix.RTPROT_KEEPALIVED: "keepalived",
	unix.RTPROT_BABEL:      "babel",
	unix.RTPROT_OVN:        "ovn",
	unix.RTPROT_OPENR:      "openr",
	unix.RTPROT_BGP:        "bgp",
	unix.RTPROT_ISIS:       "isis",
	unix.RTPROT_OSPF:       "ospf",
	unix.RTPROT_RIP:        "rip",
	unix.RTPROT_EIGRP:      "eigrp",
}

// ICMPV6_ROUTER_PREF_… of include/uapi/linux/icmpv6.h.
var routePreferences = map[uint32]string{
	0: "medium",
	1: "high",
	3: "low",
}

// FR_ACT_… of include/uapi/linux/fib_rules.h, as `ip rule` writes them.
var ruleActions = map[uint32]string{
	unix.FR_ACT_TO_TBL:      "lookup",
	unix.FR_ACT_GOTO:        "goto",
	unix.FR_ACT_NOP:         "nop",
	unix.FR_ACT_BLACKHOLE:   "blackhole",
	unix.FR_ACT_UNREACHABLE: "unreachable",
	unix.FR_ACT_PROHIBIT:    "prohibit",
}

// NUD_… of include/uapi/linux/neighbour.h.
var neighbourStates = map[uint32]string{
	unix.NUD_NONE:       "none",
	unix.NUD_INCOMPLETE: "incomplete",
	unix.NUD_REACHABLE:  "reachable",
	unix.NUD_STALE:      "stale",
	unix.NUD_DELAY:      "delay",
	unix.NUD_PROBE:      "probe",
	unix.NUD_FAILED:     "failed",
	unix.NUD_NOARP:      "noarp",
	unix.NUD_PERMANENT:  "permanent",
}

// NTF_… of include/uapi/linux/neighbour.h, and above them NTF_EXT_…, which
// come in an attribute of their own, shifted as the kernel keeps them.
var neighbourFlags = map[uint32]string{
	unix.NTF_USE:         "use",
	unix.NTF_SELF:        "self",
	unix.NTF_MASTER:      "master",
	unix.NTF_PROXY:       "proxy",
	unix.NTF_EXT_LEARNED: "extern_learn",
	unix.NTF_OFFLOADED:   "offloaded",
	1 << 6:               "sticky",
	unix.NTF_ROUTER:      "router",
	1 << 8:               "managed",
	1 << 9:               "locked",
	1 << 10:              "extern_valid",
}
