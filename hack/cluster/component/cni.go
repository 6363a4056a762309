package component

import (
	"encoding/json"
	"net/netip"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/plan"
)

// cniConfigDir has the network of pods; the first file by name counts.
const cniConfigDir = "/etc/cni/net.d"

// cniList is a list of CNI plugins for a pod, in their order (CNI
// specification, "Configuration format").
type cniList struct {
	CNIVersion string `json:"cniVersion"`
	Name       string `json:"name"`
	Plugins    []any  `json:"plugins"`
}

type cniBridge struct {
	Type             string       `json:"type"`
	Bridge           string       `json:"bridge"`
	IsDefaultGateway bool         `json:"isDefaultGateway"`
	HairpinMode      bool         `json:"hairpinMode"`
	IPAM             cniHostLocal `json:"ipam"`
}

type cniHostLocal struct {
	Type    string       `json:"type"`
	DataDir string       `json:"dataDir"`
	Ranges  [][]cniRange `json:"ranges"`
}

type cniRange struct {
	Subnet netip.Prefix `json:"subnet"`
}

type cniPortmap struct {
	Type         string          `json:"type"`
	Backend      string          `json:"backend"`
	Capabilities map[string]bool `json:"capabilities"`
}

// CNI is the network of a node's pods: a bridge, an address of each of the
// node's pod networks, and host ports. Leases are in memory, so that a node
// that boots has none of before. Nothing is translated on the way out: there
// is nothing outside.
func CNI(n plan.Node) ([]box.File, error) {
	ipam := cniHostLocal{Type: "host-local", DataDir: "/run/cni/networks"}
	for _, subnet := range n.Pods {
		ipam.Ranges = append(ipam.Ranges, []cniRange{{subnet}})
	}
	content, err := json.MarshalIndent(cniList{
		CNIVersion: "1.0.0",
		Name:       "railhead-cluster",
		Plugins: []any{
			cniBridge{Type: "bridge", Bridge: "cni0", IsDefaultGateway: true, HairpinMode: true, IPAM: ipam},
			cniPortmap{Type: "portmap", Backend: "nftables", Capabilities: map[string]bool{"portMappings": true}},
		},
	}, "", "  ")
	return []box.File{public(cniConfigDir+"/50-pods.conflist", append(content, '\n'))}, err
}
