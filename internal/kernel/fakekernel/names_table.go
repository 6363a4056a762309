package fakekernel

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// numberOf returns the number of a name, the inverse of how the clients name
// it: a name that is a number in decimal stands for itself.
func numberOf(numbers map[string]uint32, name string) uint32 {
	if n, ok := numbers[name]; ok {
		return n
	}
	n, err := strconv.ParseUint(name, 10, 32)
	if err != nil {
		panic("fakekernel: no number is known for " + strconv.Quote(name))
	}
	return uint32(n)
}

// Numbers of the kernel's enumerations; the comment gives the enumeration.
var (
	operStates = map[string]uint32{ // RFC 2863, IF_OPER_*
		"unknown": 0, "notpresent": 1, "down": 2, "lowerlayerdown": 3, "testing": 4, "dormant": 5, "up": 6,
	}
	bondModes = map[string]uint32{ // BOND_MODE_*
		"": 0, "balance-rr": 0, "active-backup": 1, "balance-xor": 2, "broadcast": 3, "802.3ad": 4, "balance-tlb": 5, "balance-alb": 6,
	}
	macvlanModes = map[string]uint32{ // MACVLAN_MODE_*
		"private": 1, "vepa": 2, "": 2, "bridge": 4, "passthru": 8, "source": 16,
	}
	ipvlanModes = map[string]uint32{ // IPVLAN_MODE_*
		"": 0, "l2": 0, "l3": 1, "l3s": 2,
	}
	scopes = map[string]uint32{ // RT_SCOPE_*
		"": 0, "global": 0, "site": 200, "link": 253, "host": 254, "nowhere": 255,
	}
	netnsModes = map[string]uint32{ // RDMA_NLDEV_SYS_ATTR_NETNS_MODE
		"exclusive": 0, "shared": 1,
	}
	nodeTypes = map[string]uint32{ // RDMA_NODE_*
		"ca": 1, "switch": 2, "router": 3, "rnic": 4, "usnic": 5, "usnic_udp": 6, "unspecified": 7,
	}
	deviceTypes = map[string]uint32{ // enum rdma_nl_dev_type
		"smi": 1,
	}
	portStates = map[string]uint32{ // enum ib_port_state
		"NOP": 0, "DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4, "ACTIVE_DEFER": 5,
	}
	physStates = map[string]uint32{ // enum ib_port_phys_state
		"SLEEP": 1, "POLLING": 2, "DISABLED": 3, "PORT_CONFIGURATION_TRAINING": 4,
		"LINK_UP": 5, "LINK_ERROR_RECOVERY": 6, "PHY_TEST": 7,
	}
	qpTypes = map[string]uint32{ // enum ib_qp_type
		"SMI": 0, "GSI": 1, "RC": 2, "UC": 3, "UD": 4, "RAW_IPV6": 5, "RAW_ETHERTYPE": 6,
		"RAW_PACKET": 8, "XRC_INI": 9, "XRC_TGT": 10, "DRIVER": 255,
	}
	qpStates = map[string]uint32{ // enum ib_qp_state
		"RESET": 0, "INIT": 1, "RTR": 2, "RTS": 3, "SQD": 4, "SQE": 5, "ERR": 6,
	}
	pathMigrationStates = map[string]uint32{ // enum ib_mig_state
		"MIGRATED": 0, "REARM": 1, "ARMED": 2,
	}
	srqTypes = map[string]uint32{ // enum ib_srq_type
		"BASIC": 0, "XRC": 1, "TM": 2,
	}
	pollContexts = map[string]uint32{ // enum ib_poll_context
		"DIRECT": 0, "SOFTIRQ": 1, "WORKQUEUE": 2, "UNBOUND_WORKQUEUE": 3,
	}
	cmStates = map[string]uint32{ // enum rdma_cm_state
		"IDLE": 0, "ADDR_QUERY": 1, "ADDR_RESOLVED": 2, "ROUTE_QUERY": 3, "ROUTE_RESOLVED": 4, "CONNECT": 5,
		"DISCONNECT": 6, "ADDR_BOUND": 7, "LISTEN": 8, "DEVICE_REMOVAL": 9, "DESTROYING": 10,
		"ADDRINFO_QUERY": 11, "ADDRINFO_RESOLVED": 12,
	}
	portSpaces = map[string]uint32{ // enum rdma_ucm_port_space
		"": 0, "IPoIB": 0x0002, "TCP": 0x0106, "UDP": 0x0111, "IB": 0x013f,
	}
	counterModes = map[string]uint32{ // enum rdma_nl_counter_mode
		"": 0, noMode: 0, autoMode: 1, manualMode: 2,
	}
	eventKinds = map[string]uint32{ // enum rdma_nl_notify_event_type
		"REGISTER": 0, "UNREGISTER": 1, "NETDEV_ATTACH": 2, "NETDEV_DETACH": 3, "RENAME": 4, "NETDEV_RENAME": 5,
	}
	vfLinkStates = map[string]uint32{ // IFLA_VF_LINK_STATE_*
		"auto": unix.IFLA_VF_LINK_STATE_AUTO, "enable": unix.IFLA_VF_LINK_STATE_ENABLE, "disable": unix.IFLA_VF_LINK_STATE_DISABLE,
	}
	vlanProtocols = map[string]uint32{ // ETH_P_*
		"802.1Q": unix.ETH_P_8021Q, "802.1ad": unix.ETH_P_8021AD,
	}
	healthStates = map[string]uint32{ // DEVLINK_HEALTH_REPORTER_STATE_*
		"healthy": 0, "error": 1,
	}
	fecBits = map[string]uint32{ // enum ethtool_link_mode_bit_indices
		"off": unix.ETHTOOL_LINK_MODE_FEC_NONE_BIT, "rs": unix.ETHTOOL_LINK_MODE_FEC_RS_BIT,
		"baser": unix.ETHTOOL_LINK_MODE_FEC_BASER_BIT, "llrs": unix.ETHTOOL_LINK_MODE_FEC_LLRS_BIT,
	}
	duplexes = map[string]uint32{ // DUPLEX_*
		"half": 0, "full": 1, "": 255,
	}
	ports = map[string]uint32{ // PORT_*
		"twisted-pair": 0, "aui": 1, "mii": 2, "fibre": 3, "bnc": 4, "direct-attach": 5, "none": 239, "other": 255,
	}
)

// modeOf gives one link mode of each speed in Mb/s, a bit of enum
// ethtool_link_mode_bit_indices.
var modeOf = map[int]uint{
	10: 1, 100: 3, 1000: 5, 2500: 47, 5000: 48, 10000: 12, 20000: 21, 25000: 31, 40000: 23, 50000: 52,
	56000: 27, 100000: 36, 200000: 62, 400000: 69, 800000: 93,
}
