package rdmanl

import "strconv"

// named returns the name of n; n in decimal where the table has none.
func named(names map[uint32]string, n uint32) string {
	if name, ok := names[n]; ok {
		return name
	}
	return strconv.FormatUint(uint64(n), 10)
}

// Names of the kernel's enumerations; the comment gives the enumeration.
var (
	nodeTypes = map[uint32]string{ // RDMA_NODE_*, include/uapi/rdma/rdma_netlink.h
		1: "ca", 2: "switch", 3: "router", 4: "rnic", 5: "usnic", 6: "usnic_udp", 7: "unspecified",
	}
	deviceTypes = map[uint32]string{ // enum rdma_nl_dev_type
		1: "smi",
	}
	portStates = map[uint32]string{ // enum ib_port_state
		0: "NOP", 1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE", 5: "ACTIVE_DEFER",
	}
	physStates = map[uint32]string{ // enum ib_port_phys_state
		1: "SLEEP", 2: "POLLING", 3: "DISABLED", 4: "PORT_CONFIGURATION_TRAINING",
		5: "LINK_UP", 6: "LINK_ERROR_RECOVERY", 7: "PHY_TEST",
	}
	protocolLinkLayers = map[string]string{ // RDMA_NLDEV_ATTR_DEV_PROTOCOL
		"ib": "InfiniBand", "opa": "InfiniBand", "roce": "Ethernet", "iw": "Ethernet", "usnic": "Ethernet",
	}
	netnsModes = map[uint32]string{ // RDMA_NLDEV_SYS_ATTR_NETNS_MODE
		0: "exclusive", 1: "shared",
	}
	qpTypes = map[uint32]string{ // enum ib_qp_type
		0: "SMI", 1: "GSI", 2: "RC", 3: "UC", 4: "UD", 5: "RAW_IPV6", 6: "RAW_ETHERTYPE",
		8: "RAW_PACKET", 9: "XRC_INI", 10: "XRC_TGT", 255: "DRIVER",
	}
	qpStates = map[uint32]string{ // enum ib_qp_state
		0: "RESET", 1: "INIT", 2: "RTR", 3: "RTS", 4: "SQD", 5: "SQE", 6: "ERR",
	}
	pathMigrationStates = map[uint32]string{ // enum ib_mig_state
		0: "MIGRATED", 1: "REARM", 2: "ARMED",
	}
	srqTypes = map[uint32]string{ // enum ib_srq_type
		0: "BASIC", 1: "XRC", 2: "TM",
	}
	pollContexts = map[uint32]string{ // enum ib_poll_context
		0: "DIRECT", 1: "SOFTIRQ", 2: "WORKQUEUE", 3: "UNBOUND_WORKQUEUE",
	}
	cmStates = map[uint32]string{ // enum rdma_cm_state
		0: "IDLE", 1: "ADDR_QUERY", 2: "ADDR_RESOLVED", 3: "ROUTE_QUERY", 4: "ROUTE_RESOLVED", 5: "CONNECT",
		6: "DISCONNECT", 7: "ADDR_BOUND", 8: "LISTEN", 9: "DEVICE_REMOVAL", 10: "DESTROYING",
		11: "ADDRINFO_QUERY", 12: "ADDRINFO_RESOLVED",
	}
	portSpaces = map[uint32]string{ // enum rdma_ucm_port_space
		0x0002: "IPoIB", 0x0106: "TCP", 0x0111: "UDP", 0x013f: "IB",
	}
	counterModes = map[uint32]string{ // enum rdma_nl_counter_mode
		0: "none", 1: "auto", 2: "manual",
	}
	eventKinds = map[uint32]string{ // enum rdma_nl_notify_event_type
		0: "REGISTER", 1: "UNREGISTER", 2: "NETDEV_ATTACH", 3: "NETDEV_DETACH", 4: "RENAME", 5: "NETDEV_RENAME",
	}
)
