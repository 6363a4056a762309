package main

// This is all that is copied of a node, but for the settings in settings.go,
// of which only what matters is written down anew. It is what the packages
// sysfs and check read. Nothing else is read: some files of sysfs do something
// when they are.

// kind is a kind of objects in sysfs. In the names of its files and links,
// * stands for any name.
type kind struct {
	class  string // the directory that lists the objects; of a part, where it is below the object
	parts  []kind
	files  []string
	links  []string
	hide   map[string]replacement // those of the files that hold an address
	sparse string                 // those of the files that are a table, of which the entries in use are enough and the last, which tells its length
}

// replacement replaces an address as the kernel writes it.
type replacement func(*pseudonyms, string) (string, error)

var (
	pciFunctions = kind{
		class: "bus/pci/devices",
		files: []string{
			"vendor", "device", "subsystem_vendor", "subsystem_device", "class", "numa_node", "local_cpulist",
			"current_link_speed", "current_link_width", "max_link_speed", "max_link_width",
			"sriov_totalvfs", "sriov_numvfs", "sriov_drivers_autoprobe", "*.sf.*/sfnum",
		},
		links: []string{"driver", "physfn", "virtfn*"},
	}
	pciBridges = kind{
		class: "bus/pci/devices",
		files: []string{"vendor", "device", "class"},
	}
	rdmaDevices = kind{
		class: "class/infiniband",
		files: []string{"parent", "node_type", "node_guid", "sys_image_guid", "fw_ver", "board_id", "hca_type"},
		links: []string{"device"},
		hide: map[string]replacement{
			"node_guid":      (*pseudonyms).guidText,
			"sys_image_guid": (*pseudonyms).guidText,
		},
		parts: []kind{rdmaPorts},
	}
	rdmaPorts = kind{
		class:  "ports/*",
		files:  []string{"state", "phys_state", "rate", "link_layer", "lid", "sm_lid", "gids/*", "gid_attrs/types/*", "gid_attrs/ndevs/*"},
		hide:   map[string]replacement{"gids/*": (*pseudonyms).gidText},
		sparse: "gids/*",
	}
	netdevs = kind{
		class: "class/net",
		files: []string{
			"ifindex", "address", "type", "mtu", "operstate", "carrier", "speed", "dev_port",
			"phys_port_name", "phys_switch_id", "bonding/mode",
		},
		links: []string{"device", "master", "lower_*"},
		hide: map[string]replacement{
			"address":        (*pseudonyms).linkText,
			"phys_switch_id": (*pseudonyms).switchText,
		},
	}
	modules = kind{
		class: "module",
		files: []string{"initstate", "parameters/netns_mode"},
	}
)

// charDevices are the kinds of character devices by their class.
var charDevices = map[string]kind{
	"uverbs":  {class: "class/infiniband_verbs", files: []string{"dev", "ibdev"}},
	"umad":    {class: "class/infiniband_mad", files: []string{"dev", "ibdev", "port"}},
	"issm":    {class: "class/infiniband_mad", files: []string{"dev", "ibdev", "port"}},
	"rdma_cm": {class: "class/misc", files: []string{"dev"}},
}

// present are files of which it matters only that they are there.
var present = []string{"dev/infiniband/*", "run/nri/nri.sock", "var/run/nri/nri.sock"}

// The sysctls of the node, and those of each netdev and of all.
var (
	sysctls     = []string{"kernel/osrelease"}
	ipv4Sysctls = []string{"rp_filter", "arp_ignore", "arp_announce"}
)

// osRelease are the lines of os-release(5) that tell the distribution.
var osRelease = []string{"ID", "ID_LIKE", "VERSION_ID"}

// limitLines are the beginnings of the lines that are copied of a process's
// limits.
var limitLines = []string{"Limit ", "Max locked memory "}

// runtimes are the processes of which command and limits are copied.
var runtimes = []string{"containerd", "crio"}

// containerdConfigs are where containerd's configuration may be.
var containerdConfigs = []string{
	"var/lib/rancher/k3s/agent/etc/containerd/config.toml",
	"var/lib/rancher/rke2/agent/etc/containerd/config.toml",
	"etc/containerd/config.toml",
}

// crioConfigs are where CRI-O's configuration may be.
var crioConfigs = []string{"/etc/crio/crio.conf", "/etc/crio/crio.conf.d/*"}

// nriPlugin is the one plugin of containerd that may be switched off as a whole.
const nriPlugin = "io.containerd.nri.v1.nri"

// containerdSwitches are what is copied of containerd's configuration, beside
// its version: switches of plugins.
var containerdSwitches = map[string]string{
	nriPlugin:                      "disable",
	"io.containerd.cri.v1.runtime": "enable_cdi",
	"io.containerd.grpc.v1.cri":    "enable_cdi",
}

// rdmaModules are the modules whose state, options in modprobe.d and
// parameters on the kernel's command line are copied.
var rdmaModules = []string{
	"ib_core", "ib_cm", "iw_cm", "rdma_cm", "rdma_ucm", "ib_uverbs", "ib_umad", "ib_ipoib",
	"mlx5_core", "mlx5_ib", "mlx4_core", "mlx4_en", "mlx4_ib", "bnxt_en", "bnxt_re", "ice", "i40e", "idpf", "irdma",
	"ionic", "ionic_rdma", "hns3", "hns_roce_hw_v2", "cxgb4", "iw_cxgb4", "qede", "qedr", "mana", "mana_ib",
	"efa", "erdma", "hfi1", "bng_en", "bng_re", "rdma_rxe", "siw",
	"nvidia", "nvidia_peermem", "nv_peer_mem", "gdrdrv", "amdgpu", "vfio_pci",
}

// kernelParameters are the other parameters that are copied of the command
// line.
var kernelParameters = []string{
	"iommu", "intel_iommu", "amd_iommu", "iommu.passthrough", "iommu.strict",
	"pci", "pcie_acs_override", "pcie_aspm", "pcie_ports", "pcie_port_pm",
	"module_blacklist", "modprobe.blacklist", "numa_balancing", "hugepages", "hugepagesz", "default_hugepagesz",
}
