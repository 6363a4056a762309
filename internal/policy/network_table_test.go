package policy

import "strings"

// networkCases are SpiderMultusConfigs and what admission says of each.
var networkCases = []struct {
	name, yaml string
	want       []string
}{
	{"custom by default", "spec: {}", nil},
	{"type unknown", "spec: {cniType: bridge}", []string{
		`refused: spec.cniType: Unsupported value: "bridge": supported values: "macvlan", "ipvlan", "vlan", "sriov", "ib-sriov", "ipoib", "ovs", "custom"`,
	}},
	{"block absent", "spec: {cniType: macvlan}", []string{
		"refused: spec.macvlan: Required value: cniType is macvlan and wants this block",
	}},
	{"block of another type", "spec: {cniType: macvlan, ipvlan: {master: [a]}}", []string{
		"refused: spec.ipvlan: Forbidden: is for cniType ipvlan, and cniType is macvlan: want spec.macvlan in its place, or cniType ipvlan",
		"refused: spec.macvlan: Required value: cniType is macvlan and wants this block, there is spec.ipvlan",
	}},
	{"type forgotten", "spec: {macvlan: {master: [a]}}", []string{
		"refused: spec.macvlan: Forbidden: is for cniType macvlan, and cniType is custom (the default): set spec.cniType: macvlan",
	}},
	{"two blocks", "spec: {cniType: macvlan, macvlan: {master: [a]}, sriov: {resourceName: a/b}}", []string{
		"refused: spec.sriov: Forbidden: is for cniType sriov, and cniType is macvlan: want spec.macvlan in its place, or cniType sriov",
	}},
	{"custom beside a block", `spec: {cniType: ovs, ovs: {bridge: br1}, customCNI: '{"type":"a"}'}`, []string{
		"refused: spec.customCNI: Forbidden: is for cniType custom, and cniType is ovs: want spec.ovs in its place, or cniType custom",
	}},

	{"master absent", "spec: {cniType: macvlan, macvlan: {master: []}}", []string{
		`refused: spec.macvlan.master: Required value: want one netdev of the node or more, such as ["ens6f0np0"]`,
	}},
	{"masters no netdevs", `spec: {cniType: macvlan, macvlan: {master: ["", a/b, sixteen-bytes-ab, "..", "a b", a, a], bond: {name: bond0, mode: 1}}}`, []string{
		`refused: spec.macvlan.master[0]: Invalid value: "": want the name of a netdev: 1 to 15 bytes, without "/", ":" and spaces, and neither "." nor ".."`,
		`refused: spec.macvlan.master[1]: Invalid value: "a/b": want the name of a netdev: 1 to 15 bytes, without "/", ":" and spaces, and neither "." nor ".."`,
		`refused: spec.macvlan.master[2]: Invalid value: "sixteen-bytes-ab": want the name of a netdev: 1 to 15 bytes, without "/", ":" and spaces, and neither "." nor ".."`,
		`refused: spec.macvlan.master[3]: Invalid value: "..": want the name of a netdev: 1 to 15 bytes, without "/", ":" and spaces, and neither "." nor ".."`,
		`refused: spec.macvlan.master[4]: Invalid value: "a b": want the name of a netdev: 1 to 15 bytes, without "/", ":" and spaces, and neither "." nor ".."`,
		`refused: spec.macvlan.master[6]: Duplicate value: "a"`,
	}},
	{"masters without bond", "spec: {cniType: ipvlan, ipvlan: {master: [a, b]}}", []string{
		`refused: spec.ipvlan.bond: Required value: 2 masters want a bond with a name and a mode, such as {"name": "bond0", "mode": 1}`,
	}},
	{"bond without name", "spec: {cniType: ipvlan, ipvlan: {master: [a, b], bond: {name: \"\", mode: 1}}}", []string{
		"refused: spec.ipvlan.bond.name: Required value: want the name of the bond",
	}},
	{"bond is a master", "spec: {cniType: ipvlan, ipvlan: {master: [a, b], bond: {name: a, mode: 7}}}", []string{
		`refused: spec.ipvlan.bond.name: Invalid value: "a": is one of the masters: want a name of its own`,
		"refused: spec.ipvlan.bond.mode: Invalid value: 7: want 0 (balance-rr), 1 (active-backup), 2 (balance-xor), 3 (broadcast), 4 (802.3ad), 5 (balance-tlb) or 6 (balance-alb)",
	}},
	{"bond name too long", "spec: {cniType: vlan, vlan: {vlanID: 2, master: [a, b], bond: {name: sixteen-bytes-ab, mode: -1}}}", []string{
		`refused: spec.vlan.bond.name: Invalid value: "sixteen-bytes-ab": want the name of a netdev: 1 to 15 bytes, without "/", ":" and spaces, and neither "." nor ".."`,
		"refused: spec.vlan.bond.mode: Invalid value: -1: want 0 (balance-rr), 1 (active-backup), 2 (balance-xor), 3 (broadcast), 4 (802.3ad), 5 (balance-tlb) or 6 (balance-alb)",
	}},
	{"bond of one", "spec: {cniType: macvlan, macvlan: {master: [a], bond: {name: bond0, mode: 1}}}", []string{
		"warning: spec.macvlan.bond: has no effect with one master",
	}},
	{"bond options", "spec: {cniType: macvlan, macvlan: {master: [a, b], bond: {name: c, mode: 1, options: \"miimon=100;arp_ip_target=10.0.0.1,10.0.0.2\"}}}", nil},
	{"bond options wrong", "spec: {cniType: macvlan, macvlan: {master: [a, b], bond: {name: c, mode: 1, options: \"miimon;=1;a=;mode=4;miimon=1; lacp_rate=1;mimon=1\"}}}", []string{
		`refused: spec.macvlan.bond.options: Invalid value: "miimon;=1;a=;mode=4;miimon=1; lacp_rate=1;mimon=1": "miimon" is no option: want "key=value;key=value" without spaces, such as "miimon=100;lacp_rate=1"`,
		`refused: spec.macvlan.bond.options: Invalid value: "miimon;=1;a=;mode=4;miimon=1; lacp_rate=1;mimon=1": "=1" is no option: want "key=value;key=value" without spaces, such as "miimon=100;lacp_rate=1"`,
		`refused: spec.macvlan.bond.options: Invalid value: "miimon;=1;a=;mode=4;miimon=1; lacp_rate=1;mimon=1": "a=" is no option: want "key=value;key=value" without spaces, such as "miimon=100;lacp_rate=1"`,
		`refused: spec.macvlan.bond.options: Invalid value: "miimon;=1;a=;mode=4;miimon=1; lacp_rate=1;mimon=1": the mode does not belong here: want it in bond.mode`,
		`refused: spec.macvlan.bond.options: Invalid value: "miimon;=1;a=;mode=4;miimon=1; lacp_rate=1;mimon=1": miimon is set twice`,
		`refused: spec.macvlan.bond.options: Invalid value: "miimon;=1;a=;mode=4;miimon=1; lacp_rate=1;mimon=1": " lacp_rate=1" is no option: want "key=value;key=value" without spaces, such as "miimon=100;lacp_rate=1"`,
		"warning: spec.macvlan.bond.options: mimon is no bonding option of Linux that is known here",
	}},

	{"vlan too large", "spec: {cniType: macvlan, macvlan: {master: [a], vlanID: 4095}}", []string{
		"refused: spec.macvlan.vlanID: Invalid value: 4095: want 0 for none, or 1 to 4094",
	}},
	{"vlan negative", "spec: {cniType: sriov, sriov: {resourceName: a/b, vlanID: -1}}", []string{
		"refused: spec.sriov.vlanID: Invalid value: -1: want 0 for none, or 1 to 4094",
	}},
	{"vlan too large beside a long master", "spec: {cniType: macvlan, macvlan: {master: [enp11s0f0np0], vlanID: 9999}}", []string{
		"refused: spec.macvlan.vlanID: Invalid value: 9999: want 0 for none, or 1 to 4094",
	}},
	{"annotations misspelt", `
metadata: {annotations: {multus.spidernet.io/crname: a, cni.spidernet.io/rdma-resource-injct: b, ipam.spidernet.io/cni-version: "1.0.0", cni.spidernet.io/colour: red, example.com/cr-nam: c}}
spec: {cniType: macvlan, macvlan: {master: [a]}}`, []string{
		"warning: annotation cni.spidernet.io/colour has no effect here: there are cni.spidernet.io/cniconfig-name, cni.spidernet.io/network-resource-inject, cni.spidernet.io/rdma-resource-inject, multus.spidernet.io/cni-version, multus.spidernet.io/cr-name",
		"warning: annotation cni.spidernet.io/rdma-resource-injct has no effect here: did you mean cni.spidernet.io/rdma-resource-inject?",
		"warning: annotation ipam.spidernet.io/cni-version has no effect here: did you mean multus.spidernet.io/cni-version?",
		"warning: annotation multus.spidernet.io/crname has no effect here: did you mean multus.spidernet.io/cr-name?",
	}},
	{"vlan device too long", "spec: {cniType: macvlan, macvlan: {master: [enp11s0f0np0], vlanID: 100}}", []string{
		"refused: spec.macvlan.vlanID: Invalid value: 100: the VLAN device would be enp11s0f0np0.100, and names of netdevs have 15 bytes at most: want a shorter master, or a VLAN device made on the node as the master and no vlanID",
	}},
	{"vlan of type vlan makes no such device", "spec: {cniType: vlan, vlan: {master: [enp11s0f0np0], vlanID: 100}}", nil},
	{"vlan mode auto with vlan", "spec: {cniType: vlan, vlan: {master: [a], vlanMode: auto, vlanID: 5}}", []string{
		"refused: spec.vlan.vlanID: Invalid value: 5: vlanMode is auto, where the VLAN comes with the address: want no vlanID, or vlanMode manual",
	}},
	{"vlan mode unknown", "spec: {cniType: vlan, vlan: {master: [a], vlanMode: own}}", []string{
		`refused: spec.vlan.vlanMode: Unsupported value: "own": supported values: "manual", "auto"`,
	}},
	{"vlan 0", "spec: {cniType: vlan, vlan: {master: [a]}}", []string{
		"warning: spec.vlan.vlanID: is 0: frames are tagged with VLAN 0, which is a priority and no VLAN",
	}},
	{"mtu small", "spec: {cniType: macvlan, macvlan: {master: [a], mtu: 67}}", []string{
		"refused: spec.macvlan.mtu: Invalid value: 67: want 0 to leave it as it is, or 68 to 65535",
	}},
	{"mtu large", "spec: {cniType: sriov, sriov: {resourceName: a/b, mtu: 65536}}", []string{
		"refused: spec.sriov.mtu: Invalid value: 65536: want 0 to leave it as it is, or 68 to 65535",
	}},

	{"resource absent", "spec: {cniType: sriov, sriov: {resourceName: \"\"}}", []string{
		`refused: spec.sriov.resourceName: Required value: want the resource of the VFs as "prefix/name", such as "spidernet.io/mellanoxrdma"`,
	}},
	{"resource without prefix", "spec: {cniType: sriov, sriov: {resourceName: mellanoxrdma}}", []string{
		`refused: spec.sriov.resourceName: Invalid value: "mellanoxrdma": want "prefix/name", such as "spidernet.io/mellanoxrdma"`,
	}},
	{"resource not even a name", "spec: {cniType: sriov, sriov: {resourceName: \"a b\"}}", []string{
		`refused: spec.sriov.resourceName: Invalid value: "a b": want "prefix/name", such as "spidernet.io/mellanoxrdma"`,
	}},
	{"resource of Kubernetes", "spec: {cniType: ib-sriov, ibsriov: {resourceName: node.kubernetes.io/rdma}}", []string{
		`refused: spec.ibsriov.resourceName: Invalid value: "node.kubernetes.io/rdma": want a prefix that is not Kubernetes' own`,
	}},
	{"resource like a quota", "spec: {cniType: sriov, sriov: {resourceName: requests.a/b}}", []string{
		`refused: spec.sriov.resourceName: Invalid value: "requests.a/b": must not begin with "requests.": quotas of Kubernetes do`,
	}},
	{"resource wrong", "spec: {cniType: macvlan, macvlan: {master: [a], rdmaResourceName: \"Spidernet.io/x/y\"}}", []string{
		`refused: spec.macvlan.rdmaResourceName: Invalid value: "Spidernet.io/x/y": want "prefix/name" as Kubernetes wants it for a resource: a DNS name in lower case, "/", and up to 63 letters, digits, "-", "_" and "." with a letter or digit first and last`,
	}},
	{"rates", "spec: {cniType: sriov, sriov: {resourceName: a/b, minTxRateMbps: 200, maxTxRateMbps: 100}}", []string{
		"refused: spec.sriov.minTxRateMbps: Invalid value: 200: want maxTxRateMbps, which is 100, or less",
	}},
	{"rates negative", "spec: {cniType: sriov, sriov: {resourceName: a/b, minTxRateMbps: -1, maxTxRateMbps: -1}}", []string{
		"refused: spec.sriov.minTxRateMbps: Invalid value: -1: want 0 for no limit, or Mbit/s",
		"refused: spec.sriov.maxTxRateMbps: Invalid value: -1: want 0 for no limit, or Mbit/s",
	}},
	{"rate without limit", "spec: {cniType: sriov, sriov: {resourceName: a/b, minTxRateMbps: 200}}", nil},
	{"enableRdma", "spec: {cniType: sriov, sriov: {resourceName: a/b, enableRdma: true}}", nil},
	{"enableRdma against rdmaIsolation", "spec: {cniType: sriov, sriov: {resourceName: a/b, enableRdma: true, rdmaIsolation: false}}", []string{
		"refused: spec.sriov.enableRdma: Invalid value: true: is the old spelling of rdmaIsolation, which is false: want rdmaIsolation alone",
	}},
	{"rdmaIsolation against enableRdma", "spec: {cniType: sriov, sriov: {resourceName: a/b, enableRdma: false, rdmaIsolation: true}}", []string{
		"refused: spec.sriov.enableRdma: Invalid value: false: is the old spelling of rdmaIsolation, which is true: want rdmaIsolation alone",
	}},
	{"enableRdma like rdmaIsolation", "spec: {cniType: sriov, sriov: {resourceName: a/b, enableRdma: true, rdmaIsolation: true}}", nil},
	{"ibKubernetesEnabled", "spec: {cniType: ib-sriov, ibsriov: {resourceName: a/b, ibKubernetesEnabled: true}}", nil},
	{"ibKubernetesEnabled against enableIbKubernetes", "spec: {cniType: ib-sriov, ibsriov: {resourceName: a/b, ibKubernetesEnabled: true, enableIbKubernetes: false}}", []string{
		"refused: spec.ibsriov.ibKubernetesEnabled: Invalid value: true: is the old spelling of enableIbKubernetes, which is false: want enableIbKubernetes alone",
	}},
	{"enableRdma alone", "spec: {cniType: macvlan, macvlan: {master: [a], enableRdma: true}}", []string{
		"warning: spec.macvlan.enableRdma: has no effect without rdmaResourceName",
	}},
	{"enableRdma false", "spec: {cniType: macvlan, macvlan: {master: [a], enableRdma: false, rdmaResourceName: a/b}}", []string{
		"warning: spec.macvlan.rdmaResourceName: has no effect while enableRdma is false",
	}},

	{"pkeys", "spec: {cniType: ib-sriov, ibsriov: {resourceName: a/b, pkey: \"0x7fFF\"}}", nil},
	{"pkey 0", "spec: {cniType: ib-sriov, ibsriov: {resourceName: a/b, pkey: \"0x0000\"}}", []string{
		`refused: spec.ibsriov.pkey: Invalid value: "0x0000": want a partition key as "0x" and up to 4 hexadecimal digits that name a partition (the low 15 bits) other than 0, such as "0x8001"`,
	}},
	{"pkey of partition 0", "spec: {cniType: ib-sriov, ibsriov: {resourceName: a/b, pkey: \"0x8000\"}}", []string{
		`refused: spec.ibsriov.pkey: Invalid value: "0x8000": want a partition key as "0x" and up to 4 hexadecimal digits that name a partition (the low 15 bits) other than 0, such as "0x8001"`,
	}},
	{"pkey decimal", "spec: {cniType: ib-sriov, ibsriov: {resourceName: a/b, pkey: \"8001\"}}", []string{
		`refused: spec.ibsriov.pkey: Invalid value: "8001": want a partition key as "0x" and up to 4 hexadecimal digits that name a partition (the low 15 bits) other than 0, such as "0x8001"`,
	}},
	{"pkey long", "spec: {cniType: ib-sriov, ibsriov: {resourceName: a/b, pkey: \"0x18001\"}}", []string{
		`refused: spec.ibsriov.pkey: Invalid value: "0x18001": want a partition key as "0x" and up to 4 hexadecimal digits that name a partition (the low 15 bits) other than 0, such as "0x8001"`,
	}},
	{"pkey no digits", "spec: {cniType: ib-sriov, ibsriov: {resourceName: a/b, pkey: \"0x+1\"}}", []string{
		`refused: spec.ibsriov.pkey: Invalid value: "0x+1": want a partition key as "0x" and up to 4 hexadecimal digits that name a partition (the low 15 bits) other than 0, such as "0x8001"`,
	}},
	{"link state", "spec: {cniType: ib-sriov, ibsriov: {resourceName: a/b, linkState: up}}", []string{
		`refused: spec.ibsriov.linkState: Unsupported value: "up": supported values: "auto", "enable", "disable"`,
	}},
	{"ipoib without master", "spec: {cniType: ipoib, ipoib: {master: \"\"}}", []string{
		`refused: spec.ipoib.master: Required value: want the IPoIB netdev of the node, such as "ib0"`,
	}},
	{"ipoib master", "spec: {cniType: ipoib, ipoib: {master: \"ib:0\"}}", []string{
		`refused: spec.ipoib.master: Invalid value: "ib:0": want the name of a netdev: 1 to 15 bytes, without "/", ":" and spaces, and neither "." nor ".."`,
	}},

	{"ovs without bridge", "spec: {cniType: ovs, ovs: {bridge: \"\"}}", []string{
		`refused: spec.ovs.bridge: Required value: want the name of the bridge, such as "br1"`,
	}},
	{"ovs bridge", "spec: {cniType: ovs, ovs: {bridge: \"a b\"}}", []string{
		`refused: spec.ovs.bridge: Invalid value: "a b": want the name of a netdev: 1 to 15 bytes, without "/", ":" and spaces, and neither "." nor ".."`,
	}},
	{"trunks", "spec: {cniType: ovs, ovs: {bridge: br1, vlan: 4095, trunk: [{id: 4095}, {}, {minID: 5}, {maxID: 5}, {minID: 6, maxID: 5}, {id: 1, minID: 5, maxID: 5}]}}", []string{
		"refused: spec.ovs.vlan: Invalid value: 4095: want 0 for none, or 1 to 4094",
		"refused: spec.ovs.trunk[0].id: Invalid value: 4095: want 0 to 4094",
		"refused: spec.ovs.trunk[1]: Required value: want id for one VLAN, or minID and maxID for a range",
		"refused: spec.ovs.trunk[2].maxID: Required value: minID is set: want the last VLAN of the range",
		"refused: spec.ovs.trunk[3].minID: Required value: maxID is set: want the first VLAN of the range",
		"refused: spec.ovs.trunk[4].minID: Invalid value: 6: want maxID, which is 5, or less",
	}},

	{"pools", "spec: {cniType: ovs, ovs: {bridge: br1, ippools: {ipv4: [\"\", A, \"v4-[\", \"v4-*\", \"a/*\", \"v4-[a-c]?\"], ipv6: ['v6\\*', \"v]\"]}}}", []string{
		"refused: spec.ovs.ippools.ipv4[0]: Required value: want the name of a SpiderIPPool",
		`refused: spec.ovs.ippools.ipv4[1]: Invalid value: "A": want the name of a SpiderIPPool: up to 253 lower-case letters, digits, "-" and ".", with a letter or digit first and last and beside each "."`,
		`refused: spec.ovs.ippools.ipv4[2]: Invalid value: "v4-[": want a pattern of names: "*" for any characters, "?" for one, "[a-c]" for one of these, each "[" with its "]"`,
		`refused: spec.ovs.ippools.ipv4[4]: Invalid value: "a/*": want a pattern of names: "*" for any characters, "?" for one, "[a-c]" for one of these, each "[" with its "]"`,
		`refused: spec.ovs.ippools.ipv6[0]: Invalid value: "v6\\*": want a pattern of names: "*" for any characters, "?" for one, "[a-c]" for one of these, each "[" with its "]"`,
	}},
	{"matchMasterSubnet", "spec: {cniType: macvlan, macvlan: {master: [a], ippools: {matchMasterSubnet: true}}}", []string{
		"refused: spec.macvlan.ippools.matchMasterSubnet: Forbidden: is for cniType sriov only, and cniType is macvlan",
	}},
	{"matchMasterSubnet of ib-sriov", "spec: {cniType: ib-sriov, ibsriov: {resourceName: a/b, ippools: {matchMasterSubnet: true}}}", []string{
		"refused: spec.ibsriov.ippools.matchMasterSubnet: Forbidden: is for cniType sriov only, and cniType is ib-sriov",
	}},
	{"matchMasterSubnet of sriov", "spec: {cniType: sriov, sriov: {resourceName: a/b, ippools: {matchMasterSubnet: true}}}", nil},
	{"pools without IPAM", "spec: {cniType: ipoib, disableIPAM: true, ipoib: {master: ib0, ippools: {ipv4: [\"a*\"]}}}", []string{
		"warning: spec.ipoib.ippools: have no effect while disableIPAM is true",
	}},

	{"chain", "spec: {cniType: ipoib, ipoib: {master: ib0}, chainCNIJsonData: [\"\", \"{\", \"[]\", \"null\", '{}', '{\"type\": 5}', '{\"type\": \"\"}', '{\"type\": \"../a\"}', '{\"plugins\": []}', '{\"type\": \"a\", \"ipam\": 5}', '{\"type\": \"a\"} x', '{\"type\": \"a\"}']}", []string{
		`refused: spec.chainCNIJsonData[0]: Invalid value: "": is no JSON: want an object such as {"type": "macvlan"} (unexpected end of JSON input)`,
		`refused: spec.chainCNIJsonData[1]: Invalid value: "{": is no JSON: want an object such as {"type": "macvlan"} (unexpected end of JSON input)`,
		`refused: spec.chainCNIJsonData[2]: Invalid value: "[]": is JSON and no object: want one such as {"type": "macvlan"}`,
		`refused: spec.chainCNIJsonData[3]: Invalid value: "null": is JSON and no object: want one such as {"type": "macvlan"}`,
		`refused: spec.chainCNIJsonData[4]: Invalid value: "{}": has no type: want a JSON object such as {"type": "tuning"}`,
		`refused: spec.chainCNIJsonData[5]: Invalid value: "{\"type\": 5}": has no type: want a JSON object such as {"type": "tuning"}`,
		`refused: spec.chainCNIJsonData[6]: Invalid value: "{\"type\": \"\"}": has no type: want a JSON object such as {"type": "tuning"}`,
		`refused: spec.chainCNIJsonData[7]: Invalid value: "{\"type\": \"../a\"}": type "../a" is no name of a CNI plugin: want the file's name alone`,
		`refused: spec.chainCNIJsonData[8]: Invalid value: "{\"plugins\": []}": is a list of plugins: want one plugin, a JSON object with a type`,
		`refused: spec.chainCNIJsonData[9]: Invalid value: "{\"type\": \"a\", \"ipam\": 5}": is no configuration of a CNI plugin: error parsing configuration: json: cannot unmarshal number into Go struct field PluginConf.ipam of type types.IPAM`,
		`refused: spec.chainCNIJsonData[10]: Invalid value: "{\"type\": \"a\"} x": is no JSON: want an object such as {"type": "macvlan"} (invalid character 'x' after top-level value)`,
	}},
	{"chain with coordinator", "spec: {cniType: ipoib, ipoib: {master: ib0}, chainCNIJsonData: ['{\"type\": \"coordinator\"}']}", []string{
		"warning: spec.chainCNIJsonData[0]: is a coordinator and enableCoordinator is true: both run",
	}},
	{"chain of custom", "spec: {chainCNIJsonData: ['{\"type\": \"a\"}']}", []string{
		"warning: spec.chainCNIJsonData: has no effect with cniType custom: want the plugins in spec.customCNI",
	}},
	{"custom coordinator", "spec: {coordinator: {mode: nonsense}}", []string{
		"warning: spec.coordinator: has no effect with cniType custom, and is dropped",
	}},
	{"custom no JSON", "spec: {customCNI: \"{\"}", []string{
		`refused: spec.customCNI: Invalid value: "{": is no JSON: want an object such as {"type": "macvlan"} (unexpected end of JSON input)`,
	}},
	{"custom no object", "spec: {customCNI: \"[]\"}", []string{
		`refused: spec.customCNI: Invalid value: "[]": is JSON and no object: want one such as {"type": "macvlan"}`,
	}},
	{"custom without type", "spec: {customCNI: '{\"cniVersion\": \"0.3.1\"}'}", []string{
		`refused: spec.customCNI: Invalid value: "{\"cniVersion\": \"0.3.1\"}": has no type: want a JSON object such as {"type": "tuning"}`,
	}},
	{"custom without plugins", "spec: {customCNI: '{\"plugins\": []}'}", []string{
		`refused: spec.customCNI: Invalid value: "{\"plugins\": []}": plugins must be a list of one or more CNI plugins, such as [{"type": "macvlan"}]`,
	}},
	{"custom plugins no list", "spec: {customCNI: '{\"plugins\": {}}'}", []string{
		`refused: spec.customCNI: Invalid value: "{\"plugins\": {}}": plugins must be a list of one or more CNI plugins, such as [{"type": "macvlan"}]`,
	}},
	{"custom plugin without type", "spec: {customCNI: '{\"plugins\": [{\"type\": \"a\"}, {}]}'}", []string{
		`refused: spec.customCNI: Invalid value: "{\"plugins\": [{\"type\": \"a\"}, {}]}": plugins[1]: has no type: want a JSON object such as {"type": "tuning"}`,
	}},
	{"custom name", "spec: {customCNI: '{\"name\": \"a b\", \"type\": \"a\"}'}", []string{
		`refused: spec.customCNI: Invalid value: "{\"name\": \"a b\", \"type\": \"a\"}": name "a b" is no name of a CNI network: want letters, digits, "_", "." and "-", with a letter or digit first`,
	}},
	{"custom name no text", "spec: {customCNI: '{\"name\": 5, \"type\": \"a\"}'}", []string{
		`refused: spec.customCNI: Invalid value: "{\"name\": 5, \"type\": \"a\"}": cniVersion and name must be strings: json: cannot unmarshal number into Go struct field .name of type string`,
	}},
	{"custom version", "spec: {customCNI: '{\"cniVersion\": \"x\", \"type\": \"a\"}'}", []string{
		`refused: spec.customCNI: Invalid value: "{\"cniVersion\": \"x\", \"type\": \"a\"}": cniVersion "x" is no version: want one such as "1.0.0"`,
	}},
	{"custom version of tomorrow", "spec: {customCNI: '{\"cniVersion\": \"2.0.0\", \"type\": \"a\"}'}", []string{
		`warning: spec.customCNI: cniVersion "2.0.0" is not known here: known are 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0`,
	}},
	{"custom list libcni refuses", "spec: {customCNI: '{\"disableCheck\": 5, \"plugins\": [{\"type\": \"a\"}]}'}", []string{
		`refused: spec.customCNI: Invalid value: "{\"disableCheck\": 5, \"plugins\": [{\"type\": \"a\"}]}": is no list of CNI plugins: error parsing configuration list: invalid type float64 for disableCheck`,
	}},

	{"cr-name empty", "metadata: {annotations: {multus.spidernet.io/cr-name: \"\"}}", []string{
		"refused: metadata.annotations[multus.spidernet.io/cr-name]: Required value: want the name of the NetworkAttachmentDefinition, or no such annotation for that of the SpiderMultusConfig",
	}},
	{"cr-name wrong", "metadata: {annotations: {multus.spidernet.io/cr-name: Rail_1}}", []string{
		`refused: metadata.annotations[multus.spidernet.io/cr-name]: Invalid value: "Rail_1": want the name of a NetworkAttachmentDefinition: up to 253 lower-case letters, digits, "-" and ".", with a letter or digit first and last and beside each "."`,
	}},
	{"cr-name too long", "metadata: {annotations: {multus.spidernet.io/cr-name: " + strings.Repeat("a", 254) + "}}", []string{
		`refused: metadata.annotations[multus.spidernet.io/cr-name]: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": want the name of a NetworkAttachmentDefinition: up to 253 lower-case letters, digits, "-" and ".", with a letter or digit first and last and beside each "."`,
	}},
	{"cr-name with a dot", "metadata: {annotations: {multus.spidernet.io/cr-name: rail.1}}", []string{
		`warning: metadata.annotations[multus.spidernet.io/cr-name]: rail.1 is no DNS label (up to 63 lower-case letters, digits and "-"): Multus cannot select such a NetworkAttachmentDefinition in the short form of k8s.v1.cni.cncf.io/networks`,
	}},
	{"name with a dot", "metadata: {name: rail.1}", []string{
		`warning: metadata.name: rail.1 is no DNS label (up to 63 lower-case letters, digits and "-"): Multus cannot select such a NetworkAttachmentDefinition in the short form of k8s.v1.cni.cncf.io/networks`,
	}},
	{"cni-version", "metadata: {annotations: {multus.spidernet.io/cni-version: 0.2.0}}\nspec: {cniType: ipoib, ipoib: {master: ib0}}", []string{
		`refused: metadata.annotations[multus.spidernet.io/cni-version]: Unsupported value: "0.2.0": supported values: "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"`,
	}},
	{"cni-version empty", "metadata: {annotations: {multus.spidernet.io/cni-version: \"\"}}\nspec: {cniType: ipoib, ipoib: {master: ib0}}", []string{
		`refused: metadata.annotations[multus.spidernet.io/cni-version]: Unsupported value: "": supported values: "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"`,
	}},
	{"cni-version 1.1.0", "metadata: {annotations: {multus.spidernet.io/cni-version: 1.1.0}}\nspec: {cniType: ipoib, ipoib: {master: ib0}}", nil},
	{"cniconfig-name", "metadata: {annotations: {cni.spidernet.io/cniconfig-name: \"a b\"}}\nspec: {cniType: ipoib, ipoib: {master: ib0}}", []string{
		`refused: metadata.annotations[cni.spidernet.io/cniconfig-name]: Invalid value: "a b": want the name of a CNI network: letters, digits, "_", "." and "-", with a letter or digit first`,
	}},
	{"names of custom", "metadata: {annotations: {cni.spidernet.io/cniconfig-name: a, multus.spidernet.io/cni-version: 1.0.0}}", []string{
		"warning: metadata.annotations[cni.spidernet.io/cniconfig-name]: has no effect with cniType custom: want it in spec.customCNI",
		"warning: metadata.annotations[multus.spidernet.io/cni-version]: has no effect with cniType custom: want it in spec.customCNI",
	}},

	{"inject", "metadata: {annotations: {cni.spidernet.io/rdma-resource-inject: \"a, b\"}}\nspec: {cniType: macvlan, macvlan: {master: [a], rdmaResourceName: a/b, ippools: {ipv6: [\"a*\"]}}}", nil},
	{"inject custom", "metadata: {annotations: {cni.spidernet.io/rdma-resource-inject: a}}", []string{
		"refused: metadata.annotations[cni.spidernet.io/rdma-resource-inject]: Forbidden: networks of cniType custom cannot be injected: want macvlan, ipvlan, vlan, sriov, ib-sriov, ipoib",
	}},
	{"inject ovs", "metadata: {annotations: {cni.spidernet.io/network-resource-inject: a}}\nspec: {cniType: ovs, ovs: {bridge: br1}}", []string{
		"refused: metadata.annotations[cni.spidernet.io/network-resource-inject]: Forbidden: networks of cniType ovs cannot be injected: want macvlan, ipvlan, vlan, sriov, ib-sriov, ipoib",
	}},
	{"inject vlan", "metadata: {annotations: {cni.spidernet.io/rdma-resource-inject: a}}\nspec: {cniType: vlan, vlan: {master: [a], vlanID: 1}}", []string{
		`refused: spec.vlan.rdmaResourceName: Required value: metadata.annotations[cni.spidernet.io/rdma-resource-inject] wants the resource that injected pods ask for, such as "spidernet.io/shared_cx5_gpu1"`,
		"refused: spec.vlan.ippools: Required value: metadata.annotations[cni.spidernet.io/rdma-resource-inject] wants at least one pool in ipv4 or ipv6",
	}},
	{"inject vlan with RDMA", "metadata: {annotations: {cni.spidernet.io/rdma-resource-inject: a}}\nspec: {cniType: vlan, vlan: {master: [a], vlanID: 1, rdmaResourceName: a/b, ippools: {ipv6: [\"a*\"]}}}", nil},
	{"inject nothing", "metadata: {annotations: {cni.spidernet.io/network-resource-inject: \" , \"}}\nspec: {cniType: ipoib, ipoib: {master: ib0}}", []string{
		"refused: metadata.annotations[cni.spidernet.io/network-resource-inject]: Required value: want one value or more, separated by commas",
	}},
	{"inject no labels", "metadata: {annotations: {cni.spidernet.io/network-resource-inject: \"a b, " + strings.Repeat("a", 64) + "\"}}\nspec: {cniType: ipoib, ipoib: {master: ib0}}", []string{
		`refused: metadata.annotations[cni.spidernet.io/network-resource-inject]: Invalid value: "a b": want values that can stand in a label: up to 63 letters, digits, "-", "_" and ".", with a letter or digit first and last`,
		`refused: metadata.annotations[cni.spidernet.io/network-resource-inject]: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": want values that can stand in a label: up to 63 letters, digits, "-", "_" and ".", with a letter or digit first and last`,
	}},
	{"inject without resource and pool", "metadata: {annotations: {cni.spidernet.io/rdma-resource-inject: a}}\nspec: {cniType: macvlan, macvlan: {master: [a], enableRdma: true}}", []string{
		`refused: spec.macvlan.rdmaResourceName: Required value: metadata.annotations[cni.spidernet.io/rdma-resource-inject] wants the resource that injected pods ask for, such as "spidernet.io/shared_cx5_gpu1"`,
		"refused: spec.macvlan.ippools: Required value: metadata.annotations[cni.spidernet.io/rdma-resource-inject] wants at least one pool in ipv4 or ipv6",
	}},
	{"inject with RDMA off", "metadata: {annotations: {cni.spidernet.io/rdma-resource-inject: a}}\nspec: {cniType: ipvlan, ipvlan: {master: [a], enableRdma: false, rdmaResourceName: a/b, ippools: {ipv4: [\"a*\"]}}}", []string{
		"refused: spec.ipvlan.enableRdma: Invalid value: false: metadata.annotations[cni.spidernet.io/rdma-resource-inject] wants RDMA: want true or nothing here, and rdmaResourceName",
		"warning: spec.ipvlan.rdmaResourceName: has no effect while enableRdma is false",
	}},
	{"inject sriov without pool", "metadata: {annotations: {cni.spidernet.io/rdma-resource-inject: a}}\nspec: {cniType: sriov, sriov: {resourceName: a/b}}", []string{
		"refused: spec.sriov.ippools: Required value: metadata.annotations[cni.spidernet.io/rdma-resource-inject] wants at least one pool in ipv4 or ipv6",
	}},
	{"inject ipoib", "metadata: {annotations: {cni.spidernet.io/rdma-resource-inject: a}}\nspec: {cniType: ipoib, ipoib: {master: ib0, ippools: {ipv4: [\"a*\"]}}}", nil},
	{"inject network without resource", "metadata: {annotations: {cni.spidernet.io/network-resource-inject: a}}\nspec: {cniType: macvlan, macvlan: {master: [a]}}", nil},
	{"inject network with resource", "metadata: {annotations: {cni.spidernet.io/network-resource-inject: a}}\nspec: {cniType: macvlan, macvlan: {master: [a], rdmaResourceName: a/b}}", []string{
		"refused: spec.macvlan.ippools: Required value: metadata.annotations[cni.spidernet.io/network-resource-inject] wants at least one pool in ipv4 or ipv6 of a network with a resource (a/b)",
	}},
	{"inject label alone", "metadata: {labels: {cni.spidernet.io/network-resource-inject: a}}\nspec: {cniType: ipoib, ipoib: {master: ib0}}", []string{
		`warning: metadata.labels[cni.spidernet.io/network-resource-inject]: "a" has no effect without the annotation of the same key, and is dropped`,
	}},

	{"coordinator refused", "spec: {cniType: ipoib, ipoib: {master: ib0}, coordinator: {mode: none}}", []string{
		`refused: spec.coordinator.mode: Unsupported value: "none": supported values: "auto", "underlay", "overlay", "disabled"`,
	}},
	{"coordinator without effect", "spec: {cniType: ipoib, enableCoordinator: false, ipoib: {master: ib0}, coordinator: {mode: overlay}}", []string{
		"warning: spec.coordinator: has no effect while enableCoordinator is false",
	}},
	{"coordinator of the cluster", "spec: {cniType: ipoib, ipoib: {master: ib0}, coordinator: {podCIDRType: none, hostRPFilter: 0}}", []string{
		"warning: spec.coordinator.hostRPFilter: has no effect: rp_filter of the node is left as it is",
		"warning: spec.coordinator.podCIDRType: has an effect in a SpiderCoordinator only",
	}},
}
