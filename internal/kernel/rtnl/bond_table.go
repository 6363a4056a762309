package rtnl

import "golang.org/x/sys/unix"

// iflaBondBroadcastNeigh is IFLA_BOND_BROADCAST_NEIGH, which package unix has no name for.
const iflaBondBroadcastNeigh = 33

var offOn = map[uint32]string{0: "off", 1: "on"}

// Options of a bond under the names of Documentation/networking/bonding.rst, with
// the names that drivers/net/bonding/bond_options.c has for values.
var bondOptions = map[string]bondOption{
	"active_slave":       {typ: unix.IFLA_BOND_ACTIVE_SLAVE, form: number32}, // index of a link
	"ad_actor_sys_prio":  {typ: unix.IFLA_BOND_AD_ACTOR_SYS_PRIO, form: number16},
	"ad_actor_system":    {typ: unix.IFLA_BOND_AD_ACTOR_SYSTEM, form: hardwareAddress},
	"ad_select":          {typ: unix.IFLA_BOND_AD_SELECT, names: map[uint32]string{0: "stable", 1: "bandwidth", 2: "count", 3: "prio"}},
	"ad_user_port_key":   {typ: unix.IFLA_BOND_AD_USER_PORT_KEY, form: number16},
	"all_slaves_active":  {typ: unix.IFLA_BOND_ALL_SLAVES_ACTIVE, names: map[uint32]string{0: "dropped", 1: "delivered"}},
	"arp_all_targets":    {typ: unix.IFLA_BOND_ARP_ALL_TARGETS, form: number32, names: map[uint32]string{0: "any", 1: "all"}},
	"arp_interval":       {typ: unix.IFLA_BOND_ARP_INTERVAL, form: number32}, // milliseconds
	"arp_ip_target":      {typ: unix.IFLA_BOND_ARP_IP_TARGET, form: listIPv4},
	"arp_missed_max":     {typ: unix.IFLA_BOND_MISSED_MAX},
	"arp_validate":       {typ: unix.IFLA_BOND_ARP_VALIDATE, form: number32, names: map[uint32]string{0: "none", 1: "active", 2: "backup", 3: "all", 4: "filter", 5: "filter_active", 6: "filter_backup"}},
	"broadcast_neighbor": {typ: iflaBondBroadcastNeigh, names: offOn},
	"coupled_control":    {typ: unix.IFLA_BOND_COUPLED_CONTROL, names: offOn},
	"downdelay":          {typ: unix.IFLA_BOND_DOWNDELAY, form: number32}, // milliseconds
	"fail_over_mac":      {typ: unix.IFLA_BOND_FAIL_OVER_MAC, names: map[uint32]string{0: "none", 1: "active", 2: "follow"}},
	"lacp_active":        {typ: unix.IFLA_BOND_AD_LACP_ACTIVE, names: offOn},
	"lacp_rate":          {typ: unix.IFLA_BOND_AD_LACP_RATE, names: map[uint32]string{0: "slow", 1: "fast"}},
	"lp_interval":        {typ: unix.IFLA_BOND_LP_INTERVAL, form: number32}, // seconds
	"miimon":             {typ: unix.IFLA_BOND_MIIMON, form: number32},      // milliseconds
	"min_links":          {typ: unix.IFLA_BOND_MIN_LINKS, form: number32},
	"ns_ip6_target":      {typ: unix.IFLA_BOND_NS_IP6_TARGET, form: listIPv6},
	"num_grat_arp":       {typ: unix.IFLA_BOND_NUM_PEER_NOTIF},
	"num_unsol_na":       {typ: unix.IFLA_BOND_NUM_PEER_NOTIF}, // the same thing
	"packets_per_slave":  {typ: unix.IFLA_BOND_PACKETS_PER_SLAVE, form: number32},
	"peer_notif_delay":   {typ: unix.IFLA_BOND_PEER_NOTIF_DELAY, form: number32}, // milliseconds
	"primary":            {typ: unix.IFLA_BOND_PRIMARY, form: number32},          // index of a link, which may join later
	"primary_reselect":   {typ: unix.IFLA_BOND_PRIMARY_RESELECT, names: map[uint32]string{0: "always", 1: "better", 2: "failure"}},
	"resend_igmp":        {typ: unix.IFLA_BOND_RESEND_IGMP, form: number32},
	"tlb_dynamic_lb":     {typ: unix.IFLA_BOND_TLB_DYNAMIC_LB, names: offOn},
	"updelay":            {typ: unix.IFLA_BOND_UPDELAY, form: number32}, // milliseconds
	"use_carrier":        {typ: unix.IFLA_BOND_USE_CARRIER, names: offOn},
	"xmit_hash_policy": {typ: unix.IFLA_BOND_XMIT_HASH_POLICY, names: map[uint32]string{
		0: "layer2", 1: "layer3+4", 2: "layer2+3", 3: "encap2+3", 4: "encap3+4", 5: "vlan+srcmac",
	}},
}
