package nad

import (
	"errors"
	"fmt"
	"strconv"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// chain is the plugins of n in their order: what makes masters, the main one,
// the RDMA device's, those of the user, the coordinator, and the MTU of a VF.
func chain(n policy.Network) ([]any, error) {
	var plugins []any
	if p := ifacerOf(n); p != nil {
		plugins = append(plugins, p)
	}
	main, err := mainOf(n)
	if err != nil {
		return nil, err
	}
	plugins = append(plugins, main)
	if n.Type == v2beta1.CNISRIOV && n.RDMAIsolation {
		plugins = append(plugins, simple{Type: "rdma"})
	}
	for _, p := range n.Chain {
		plugins = append(plugins, p)
	}
	if n.Coordinated {
		plugins = append(plugins, coordinatorOf(n.Coordinator))
	}
	if n.Type == v2beta1.CNISRIOV && n.MTU > 0 {
		plugins = append(plugins, tuning{Type: "tuning", MTU: n.MTU})
	}
	return plugins, nil
}

// ifacerOf makes the bond and the VLAN device that the main plugin's master is, nil if there is neither.
func ifacerOf(n policy.Network) *ifacer {
	vlan := n.VLAN
	switch n.Type {
	case v2beta1.CNIMacvlan, v2beta1.CNIIPvlan:
	case v2beta1.CNIVlan:
		// The main plugin makes the VLAN device.
		vlan = 0
	default:
		return nil
	}
	if vlan == 0 && n.Bond == nil {
		return nil
	}
	p := &ifacer{Type: "ifacer", Interfaces: n.Masters, VLANID: vlan}
	if n.Bond != nil {
		p.Bond = &bond{Name: n.Bond.Name, Mode: n.Bond.Mode, Options: n.Bond.Options}
	}
	return p
}

// masterOf is the netdev below the main plugin's interface.
func masterOf(n policy.Network) (string, error) {
	var master string
	switch {
	case n.Bond != nil:
		master = n.Bond.Name
	case len(n.Masters) == 1:
		master = n.Masters[0]
	default:
		return "", fmt.Errorf("%d masters without a bond: want one, or a bond", len(n.Masters))
	}
	if n.VLAN != 0 && n.Type != v2beta1.CNIVlan {
		master += "." + strconv.Itoa(int(n.VLAN))
	}
	return master, nil
}

// mainOf makes the interface.
func mainOf(n policy.Network) (any, error) {
	switch n.Type {
	case v2beta1.CNIMacvlan, v2beta1.CNIIPvlan, v2beta1.CNIVlan, v2beta1.CNIIPoIB:
		return mainOnMaster(n)
	case v2beta1.CNISRIOV:
		if n.SRIOV == nil {
			return nil, errors.New("sriov without its rates")
		}
		return sriov{Type: n.Type, VLAN: n.VLAN, MinTxRate: n.SRIOV.MinTxRateMbps, MaxTxRate: n.SRIOV.MaxTxRateMbps, IPAM: ipamOf(n)}, nil
	case v2beta1.CNIIBSRIOV:
		if n.IB == nil {
			return nil, errors.New("ib-sriov without its partition key and link state")
		}
		return ibSRIOV{
			Type: n.Type, Pkey: n.IB.Pkey, LinkState: n.IB.LinkState,
			RDMAIsolation: n.RDMAIsolation, IBKubernetesEnabled: n.IB.IBKubernetes, IPAM: ipamOf(n),
		}, nil
	case v2beta1.CNIOVS:
		if n.OVS == nil {
			return nil, errors.New("ovs without its bridge")
		}
		return ovs{Type: n.Type, Bridge: n.OVS.Bridge, VLAN: n.VLAN, DeviceID: n.OVS.DeviceID, Trunk: n.OVS.Trunk, IPAM: ipamOf(n)}, nil
	}
	return nil, fmt.Errorf("no plugin makes interfaces of type %q", n.Type)
}

// mainOnMaster makes an interface on a netdev of the node.
func mainOnMaster(n policy.Network) (any, error) {
	master, err := masterOf(n)
	if err != nil {
		return nil, err
	}
	switch n.Type {
	case v2beta1.CNIMacvlan:
		return macvlan{Type: n.Type, Master: master, Mode: "bridge", MTU: n.MTU, IPAM: ipamOf(n)}, nil
	case v2beta1.CNIIPvlan:
		return ipvlan{Type: n.Type, Master: master, MTU: n.MTU, IPAM: ipamOf(n)}, nil
	case v2beta1.CNIVlan:
		if n.VLANAuto {
			return vlan{Type: n.Type, Master: master, VLANMode: "auto", MTU: n.MTU, IPAM: ipamOf(n)}, nil
		}
		return vlan{Type: n.Type, Master: master, VLANMode: "manual", VLANID: &n.VLAN, MTU: n.MTU, IPAM: ipamOf(n)}, nil
	}
	return ipoib{Type: n.Type, Master: master, IPAM: ipamOf(n)}, nil
}

// ipamOf gives the interface addresses, nil if it shall have none.
func ipamOf(n policy.Network) *ipam {
	if !n.IPAM {
		return nil
	}
	return &ipam{
		Type: "spiderpool", DefaultIPv4: n.Pools.IPv4, DefaultIPv6: n.Pools.IPv6,
		MatchMasterSubnet: n.Pools.MatchMasterSubnet,
	}
}
