package policy

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// block is one type of network and where its fields stand.
type block struct {
	cniType v2beta1.CNIType
	field   string
	there   func(*v2beta1.MultusConfigSpec) bool
	// read fills in a draft from the block, which is there.
	read func(*draft, *v2beta1.MultusConfigSpec, *field.Path)
	// injectable networks may carry inject annotations.
	injectable bool
	// optional blocks may be absent.
	optional bool
}

// blocks are all types, in the order in which texts list them.
var blocks = []block{
	{
		cniType: v2beta1.CNIMacvlan, field: "macvlan", injectable: true,
		there: func(s *v2beta1.MultusConfigSpec) bool { return s.Macvlan != nil },
		read: func(d *draft, s *v2beta1.MultusConfigSpec, at *field.Path) {
			d.readParent(&s.Macvlan.Parent, at)
			d.readVLANDevice(at)
		},
	},
	{
		cniType: v2beta1.CNIIPvlan, field: "ipvlan", injectable: true,
		there: func(s *v2beta1.MultusConfigSpec) bool { return s.IPvlan != nil },
		read: func(d *draft, s *v2beta1.MultusConfigSpec, at *field.Path) {
			d.readParent(&s.IPvlan.Parent, at)
			d.readVLANDevice(at)
		},
	},
	{
		cniType: v2beta1.CNIVlan, field: "vlan", injectable: true,
		there: func(s *v2beta1.MultusConfigSpec) bool { return s.Vlan != nil },
		read: func(d *draft, s *v2beta1.MultusConfigSpec, at *field.Path) {
			d.readParent(&s.Vlan.Parent, at)
			d.readVLANMode(s.Vlan, at)
		},
	},
	{
		cniType: v2beta1.CNISRIOV, field: "sriov", injectable: true,
		there: func(s *v2beta1.MultusConfigSpec) bool { return s.SRIOV != nil },
		read:  func(d *draft, s *v2beta1.MultusConfigSpec, at *field.Path) { d.readSRIOV(s.SRIOV, at) },
	},
	{
		cniType: v2beta1.CNIIBSRIOV, field: "ibsriov", injectable: true,
		there: func(s *v2beta1.MultusConfigSpec) bool { return s.IBSRIOV != nil },
		read:  func(d *draft, s *v2beta1.MultusConfigSpec, at *field.Path) { d.readIBSRIOV(s.IBSRIOV, at) },
	},
	{
		cniType: v2beta1.CNIIPoIB, field: "ipoib", injectable: true,
		there: func(s *v2beta1.MultusConfigSpec) bool { return s.IPoIB != nil },
		read:  func(d *draft, s *v2beta1.MultusConfigSpec, at *field.Path) { d.readIPoIB(s.IPoIB, at) },
	},
	{
		cniType: v2beta1.CNIOVS, field: "ovs",
		there: func(s *v2beta1.MultusConfigSpec) bool { return s.OVS != nil },
		read:  func(d *draft, s *v2beta1.MultusConfigSpec, at *field.Path) { d.readOVS(s.OVS, at) },
	},
	{
		cniType: v2beta1.CNICustom, field: "customCNI", optional: true,
		there: func(s *v2beta1.MultusConfigSpec) bool { return s.CustomCNI != nil },
		read:  func(d *draft, s *v2beta1.MultusConfigSpec, at *field.Path) { d.readCustom(*s.CustomCNI, at) },
	},
}

// cniVersions are those that a NetworkAttachmentDefinition may be made for.
var cniVersions = []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}

// defaultCNIVersion is what plugins of all ages understand.
const defaultCNIVersion = "0.3.1"

// bondOptions are the bonding options of Linux that can be set beside the mode.
// Source: drivers/net/bonding/bond_options.c.
var bondOptions = []string{
	"active_slave", "actor_port_prio", "ad_actor_sys_prio", "ad_actor_system", "ad_select", "ad_user_port_key",
	"all_slaves_active", "arp_all_targets", "arp_interval", "arp_ip_target", "arp_missed_max", "arp_validate",
	"broadcast_neighbor", "coupled_control", "downdelay", "fail_over_mac", "lacp_active", "lacp_rate", "lp_interval",
	"miimon", "min_links", "num_grat_arp", "num_unsol_na", "ns_ip6_target", "packets_per_slave", "peer_notif_delay",
	"primary", "primary_reselect", "prio", "queue_id", "resend_igmp", "tlb_dynamic_lb", "updelay", "use_carrier",
	"xmit_hash_policy",
}
