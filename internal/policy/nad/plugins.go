package nad

import "railhead/api/spiderpool/v2beta1"

// The configurations of the plugins, in the order of keys in which they are
// written. Numbers and switches that users may leave out are written as 0 and
// false, because plugins of other authors have been given them so.
type (
	simple struct {
		Type string `json:"type"`
	}
	tuning struct {
		Type string `json:"type"`
		MTU  int32  `json:"mtu"`
	}
	ifacer struct {
		Type       string   `json:"type"`
		Interfaces []string `json:"interfaces"`
		VLANID     int32    `json:"vlanID"`
		Bond       *bond    `json:"bond,omitempty"`
	}
	bond struct {
		Name    string `json:"name"`
		Mode    int    `json:"mode"`
		Options string `json:"options,omitempty"`
	}
	macvlan struct {
		Type   string `json:"type"`
		Master string `json:"master"`
		Mode   string `json:"mode"`
		MTU    int32  `json:"mtu"`
		IPAM   *ipam  `json:"ipam,omitempty"`
	}
	// ipvlan has no mode: the plugin's own is L2.
	ipvlan struct {
		Type   string `json:"type"`
		Master string `json:"master"`
		MTU    int32  `json:"mtu"`
		IPAM   *ipam  `json:"ipam,omitempty"`
	}
	vlan struct {
		Type     string `json:"type"`
		Master   string `json:"master"`
		VLANMode string `json:"vlanMode"`
		VLANID   *int32 `json:"vlanId,omitempty"`
		MTU      int32  `json:"mtu"`
		IPAM     *ipam  `json:"ipam,omitempty"`
	}
	// sriov has no deviceID: whoever runs the plugin puts in that of the VF.
	sriov struct {
		Type      string `json:"type"`
		VLAN      int32  `json:"vlan"`
		MinTxRate int    `json:"min_tx_rate"`
		MaxTxRate int    `json:"max_tx_rate"`
		IPAM      *ipam  `json:"ipam,omitempty"`
	}
	// ibSRIOV moves the RDMA device itself, no further plugin does.
	ibSRIOV struct {
		Type                string `json:"type"`
		Pkey                string `json:"pkey"`
		LinkState           string `json:"link_state"`
		RDMAIsolation       bool   `json:"rdmaIsolation"`
		IBKubernetesEnabled bool   `json:"ibKubernetesEnabled"`
		IPAM                *ipam  `json:"ipam,omitempty"`
	}
	ipoib struct {
		Type   string `json:"type"`
		Master string `json:"master"`
		IPAM   *ipam  `json:"ipam,omitempty"`
	}
	ovs struct {
		Type     string          `json:"type"`
		Bridge   string          `json:"bridge"`
		VLAN     int32           `json:"vlan"`
		DeviceID string          `json:"deviceID,omitempty"`
		Trunk    []v2beta1.Trunk `json:"trunk,omitempty"`
		IPAM     *ipam           `json:"ipam,omitempty"`
	}
	ipam struct {
		Type              string   `json:"type"`
		DefaultIPv4       []string `json:"default_ipv4_ippool,omitempty"`
		DefaultIPv6       []string `json:"default_ipv6_ippool,omitempty"`
		MatchMasterSubnet bool     `json:"match_master_subnet,omitempty"`
	}
)
