package counters

// owner are the labels by which series of pods say whose they are.
var owner = []string{"pod_namespace", "pod_name", "owner_kind", "owner_namespace", "owner_name"}

// pods are families about pods that are no pod's share of a device's family.
var pods = []Family{
	{Name: "rdma_pod_info", Kind: Info, Scope: WholeNode, Tier: Slow, Labels: []string{"pod_namespace", "pod_name", "pod_uid", "owner_api_version", "owner_kind", "owner_namespace", "owner_name", "reason"}, Help: "A pod with RDMA and the topmost object that owns it; always 1. The reason says why the search for the owner ended early."},
	{Name: "rdma_pod_device_info", Kind: Info, Scope: WholeNode, Tier: Slow, Labels: withOwner("device", "netdev", "pf_device", "rail", "attribution"), Help: "A device that a pod has or uses, and how that is known (attribution: exclusive, qp_counter, sole_user or shared); always 1. Where IPoIB is loaded no pod is the sole user of an InfiniBand device."},
	{Name: "rdma_pod_qps", Kind: Gauge, Scope: WholeNode, Tier: Slow, Labels: withOwner("device", "qp_type", "state"), Help: "Queue pairs of a pod; absent on a device that has more of them than may be asked for one by one, of which rdma_device_resources tells the number."},
	{Name: "rdma_pod_memory_regions", Kind: Gauge, Scope: WholeNode, Tier: Slow, Labels: withOwner("device"), Help: "Memory regions that a pod has registered."},
	{Name: "rdma_pod_memory_region_bytes", Kind: Gauge, Scope: WholeNode, Tier: Slow, Labels: withOwner("device"), Help: "Memory that a pod has registered, which cannot be swapped out; memory registered twice counts twice."},
	{Name: "rdma_pod_cm_ids", Kind: Gauge, Scope: WholeNode, Tier: Slow, Labels: withOwner("device"), Help: "Connections and listening endpoints of rdma_cm of a pod."},
	{Name: "rdma_pod_contexts", Kind: Gauge, Scope: WholeNode, Tier: Slow, Labels: withOwner("device"), Help: "Times that processes of a pod have opened a device."},
	{Name: "rdma_pod_attribution_coverage_ratio", Kind: Gauge, Scope: WholeDevice, Tier: Slow, Help: "Share of a device's received and sent bytes that series of pods account for; what lacks was shared by several pods or nobody's."},
}

func withOwner(more ...string) []string { return append(owner[:len(owner):len(owner)], more...) }

// shareLabels are the labels of a pod's share of a device's family, before the
// family's own.
var shareLabels = withOwner("device", "port", "attribution")

// exporter are families about the exporter itself.
var exporter = []Family{
	{Name: "rdma_exporter_collector_success", Kind: Gauge, Scope: WholeNode, Tier: Traffic, Labels: []string{"collector"}, Help: "Whether the last pass of a collector read all that it should (1); kubernetes: whether the API server tells of the node's pods now."},
	{Name: "rdma_exporter_collect_duration_seconds", Kind: Histogram, Scope: WholeNode, Tier: Traffic, Labels: []string{"collector"}, Help: "How long passes of a collector took."},
	{Name: "rdma_exporter_sample_age_seconds", Kind: Gauge, Scope: WholeDevice, Tier: Traffic, Help: "Time since a device was last read."},
	{Name: "rdma_exporter_read_errors", Scope: WholeDevice, Tier: Traffic, Labels: []string{"source", "errno"}, Help: "Questions to the kernel that failed, by where they went and the error number."},
	{Name: "rdma_exporter_setbacks", Scope: WholeDevice, Tier: Traffic, Help: "Times a counter narrower than 64 bits was less than before and had not wrapped, so that what it had counted since is lost: somebody reset it, it counts queue pairs that moved, or it grew by more than half of what it can hold between two readings."},
	{Name: "rdma_exporter_device_quarantined", Kind: Gauge, Scope: WholeDevice, Tier: Traffic, Labels: []string{"reason"}, Help: "A device that is left alone for a time because reading it fails; always 1."},
	{Name: "rdma_exporter_pods", Kind: Gauge, Scope: WholeNode, Tier: Slow, Labels: []string{"attribution"}, Help: "Pods with RDMA, by how their numbers are known."},
	{Name: "rdma_exporter_unknown_counters", Scope: WholeNode, Tier: Slow, Labels: []string{"driver", "name"}, Help: "Counters of the kernel that this version has no row for; they are exported under the kernel's name without a type."},
	{Name: "rdma_exporter_build_info", Kind: Info, Scope: WholeNode, Tier: Slow, Labels: []string{"version", "goversion"}, Help: "The version of the exporter; always 1."},
}
