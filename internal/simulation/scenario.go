package simulation

// Scenario is a node and what happens on it, as [Load] reads it from a file.
//
// Where RealNode is set it describes RDMA alone: cards that stand on netdevs of
// the node we run on, and what its processes do with them. All else, from Node
// to Kubernetes, is then the node's own and stays empty here.
type Scenario struct {
	Node       string      `json:"node,omitempty"`
	RealNode   bool        `json:"realNode,omitempty"`
	Seed       uint64      `json:"seed,omitempty"`      // of GUIDs, UIDs and jitter
	Kernel     string      `json:"kernel,omitempty"`    // release; 6.12.48 by default
	NetNSMode  string      `json:"netnsMode,omitempty"` // exclusive, the default, or shared
	Cgroup     Cgroup      `json:"cgroup,omitzero"`     //
	Cards      []Card      `json:"cards"`               //
	Pods       []Pod       `json:"pods,omitempty"`      //
	Congestion []Congested `json:"congestion,omitempty"`
	Counters   []Growth    `json:"counters,omitempty"`
	Events     []Event     `json:"events,omitempty"`
	Kubernetes Kubernetes  `json:"kubernetes,omitzero"`
}

// Cgroup says in which form the kubelet names the cgroups of pods.
type Cgroup struct {
	Version int    `json:"version,omitempty"` // 2, the default, or 1
	Driver  string `json:"driver,omitempty"`  // systemd, the default, or cgroupfs
}

// Card is a physical function and its VFs.
type Card struct {
	Name      string   `json:"name"`                // of its RDMA device
	Driver    string   `json:"driver,omitempty"`    // mlx5 by default
	PCI       string   `json:"pci,omitempty"`       // address; none for rxe; on a real node by default that in the name of the netdev
	Netdev    string   `json:"netdev,omitempty"`    // of the PF; one in the form enp24s0f0np0 by default; on a real node the netdev it stands on
	Rail      *int     `json:"rail,omitempty"`      // what {rail} stands for; its place among the cards by default
	NUMA      int      `json:"numa,omitempty"`      //
	LinkLayer string   `json:"linkLayer,omitempty"` // RoCE, the default, or InfiniBand
	Speed     int      `json:"speed,omitempty"`     // Gb/s; 400 by default
	Lanes     int      `json:"lanes,omitempty"`     // 4 by default
	MTU       int      `json:"mtu,omitempty"`       // of an invented netdev; 4200 by default, 9000 holds RDMA packets of 4096 bytes too
	Firmware  string   `json:"firmware,omitempty"`  // 28.39.1002 by default
	VFs       int      `json:"vfs,omitempty"`       //
	GPU       bool     `json:"gpu,omitempty"`       // whether a GPU is below the same switch
	Address   string   `json:"address,omitempty"`   // of the PF's netdev: 172.16.0.5/24
	PFC       []int    `json:"pfc,omitzero"`        // lossless priorities; [3] by default on RoCE
	Priority  *int     `json:"priority,omitempty"`  // of RDMA; the first of pfc by default, or 0
	Traffic   *Traffic `json:"traffic,omitempty"`   // of the PF, by nobody's pod

	// QPCounters is how its devices bind queue pairs to counters: none, the
	// default, or pid.
	QPCounters string `json:"qpCounters,omitempty"`
}

// Traffic is what a device sends and receives.
type Traffic struct {
	Receive     Quantity `json:"receive,omitzero"`     // bytes a second while it is busy: 18G
	Transmit    Quantity `json:"transmit,omitzero"`    // likewise
	Pattern     string   `json:"pattern,omitempty"`    // steady, the default; training: on and off; wave: up and down
	Period      Duration `json:"period,omitzero"`      // of the pattern; 10s by default
	Busy        float64  `json:"busy,omitempty"`       // share of the period in which training communicates, or depth of the wave; 0.6 by default
	Jitter      float64  `json:"jitter,omitempty"`     // how much periods differ, 0 to 0.9
	MessageSize Quantity `json:"messageSize,omitzero"` // bytes; 1Mi by default
}

// When says in which times something is: from From on for For, again every
// Every. Without For it does not end, without Every it is once.
type When struct {
	From  Duration `json:"from,omitzero"`
	For   Duration `json:"for,omitzero"`
	Every Duration `json:"every,omitzero"`
}

// Pod is a pod of the node. One that comes again is another each time: its name
// ends with the number of the time.
//
// On a real node it is what pods do that Match finds, from when they are there
// until they are gone. What Kubernetes says of them is not told here then, and
// without Devices they use all cards.
type Pod struct {
	When `json:",inline"`

	Match map[string]string `json:"match,omitempty"` // variables of the environment of a container's processes, by patterns: {HOSTNAME: "llama-*"}

	Namespace   string            `json:"namespace,omitempty"`
	Name        string            `json:"name,omitempty"`
	UID         string            `json:"uid,omitempty"` // by the seed where empty
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Owners      []Owner           `json:"owners,omitempty"`      // controllers, the nearest first
	HostNetwork bool              `json:"hostNetwork,omitempty"` //

	Devices   []string `json:"devices,omitempty"`   // RDMA device of a PF, mlx5_0, or one of its VFs by number, mlx5_0/1
	Use       string   `json:"use,omitempty"`       // exclusive, the default: the devices move into the pod; or shared, as always on a real node
	Resource  string   `json:"resource,omitempty"`  // that the kubelet gave; {rail} stands for the number of the rail
	Processes int      `json:"processes,omitempty"` // that use the devices; 1 by default; the oldest of a container on a real node

	QueuePairs    int           `json:"queuePairs,omitempty"`    // of each process on each device; 8 by default
	MemoryRegions MemoryRegions `json:"memoryRegions,omitzero"`  // likewise
	Connections   int           `json:"connections,omitempty"`   // CM IDs, likewise
	Traffic       *Traffic      `json:"traffic,omitempty"`       // on each device
	Failed        int           `json:"failedQPs,omitempty"`     // how many of the queue pairs are in error
	Unscheduled   bool          `json:"unscheduled,omitempty"`   // it has devices and processes, but the API server does not know it
	NoPodResource bool          `json:"noPodResource,omitempty"` // the kubelet does not tell of its devices
}

// MemoryRegions is how many regions a process registers, and how large each is.
type MemoryRegions struct {
	Count int      `json:"count,omitempty"` // 4 by default
	Size  Quantity `json:"size,omitzero"`   // bytes; 256Mi by default
}

// Owner is a controller of a pod or of another owner.
type Owner struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Name       string            `json:"name"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// Kubernetes is what the API server allows.
type Kubernetes struct {
	Forbidden []string `json:"forbidden,omitempty"` // resources that may not be read: pytorchjobs.kubeflow.org
	Absent    []string `json:"absent,omitempty"`    // resources whose objects are gone: 404
}

// Congested is congestion at the port of a card.
type Congested struct {
	When `json:",inline"`

	Devices  []string `json:"devices"`
	Priority *int     `json:"priority,omitempty"` // the card's RDMA priority by default
	Receive  float64  `json:"receive,omitempty"`  // share of the time in which the fabric pauses us
	Transmit float64  `json:"transmit,omitempty"` // share of the time in which we pause the fabric
	Marked   Quantity `json:"marked,omitzero"`    // packets a second that come marked, and are answered
	Notified Quantity `json:"notified,omitzero"`  // notifications a second that come, and are handled
	Discards Quantity `json:"discards,omitzero"`  // packets a second that do not fit the receive buffer
}

// Growth is a counter that grows beside what traffic makes of it.
type Growth struct {
	When `json:",inline"`

	Devices []string `json:"devices"`
	Counter string   `json:"counter"`        // under the kernel's name
	Rate    float64  `json:"rate,omitempty"` // a second
	Start   Quantity `json:"start,omitzero"` // what it had counted before
}

// Event is something that happens to cards.
type Event struct {
	When `json:",inline"`

	Devices []string `json:"devices"`
	Do      string   `json:"do"` // down, flap, degrade, stall, refuse, block, or full

	Down    Duration `json:"down,omitzero"`     // flap: how long the port is down; 2s by default
	Up      Duration `json:"up,omitzero"`       // flap: how long it is up in between; 10s by default
	Speed   int      `json:"speed,omitempty"`   // degrade: Gb/s
	Lanes   int      `json:"lanes,omitempty"`   // degrade
	Share   float64  `json:"share,omitempty"`   // degrade: of the traffic that still gets through; stall: of the time
	Counter string   `json:"counter,omitempty"` // full: one that saturates
	Errno   string   `json:"errno,omitempty"`   // refuse: EIO
	Request string   `json:"request,omitempty"` // refuse, block: statistics (RDMA counters), ethtool, resources, or port
	Delay   Duration `json:"delay,omitzero"`    // block
}
