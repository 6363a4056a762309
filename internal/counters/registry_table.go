package counters

// sets are the rows of all sources and drivers. Where two have a family in
// common, the first says what it means.
var sets = []*set{
	&mlx5, &portData, &portErrors, &mlx5Netdev, &bnxt, &irdma, &efa, &mana, &erdma, &ionic, &hns, &rxe, &mlx4,
	&efaDevice, &manaDevice, &mlx4Device, &mlx5Device, &mlx4Whole, &irdmaDevice,
	&bnxtNetdev, &ionicNetdev, &iceNetdev, &hnsNetdev, &standardStats, &dcbStats, &vnicStats, &cmStats, &mlx5Representor,
}

// Counters of a port that are shown for the whole device: by mlx5 where it
// manages an eswitch, by mlx4 with older firmware, by irdma on kernels before
// 5.14.
var (
	mlx5Device  = set{source: deviceFiles, drivers: mlx5.drivers, raw: true, again: true, rows: mlx5.rows}
	mlx4Whole   = set{source: deviceFiles, drivers: mlx4.drivers, raw: true, again: true, rows: mlx4.rows}
	irdmaDevice = set{source: deviceFiles, drivers: irdma.drivers, raw: true, again: true, rows: irdma.rows}
)

// subject is a group of families before it is put together.
type subject struct {
	title, about string
	families     []Family
	add          func(*registry, []*set) // where there are none in a list
}

// subjects are all groups of families, in the order of their exposition.
var subjects = []subject{
	{title: "Traffic and errors, the same for every driver", families: neutral, about: "" +
		"One name for what drivers count under names of their own. What a driver does not count is absent: " +
		"hns has no bytes, Soft-RoCE has them since Linux 7, mlx5 does not count retransmitted packets."},
	{title: "Congestion, link and PCIe", families: congestion, about: "" +
		"What the physical port sees, with the labels of the PF. VFs have no such counters: join them by `pf_device` of `rdma_port_info`."},
	{title: "Counters of the drivers", add: (*registry).addRows, about: "" +
		"Every counter that the kernel has, under the kernel's own name for it: `rdma_`, the name, and `_total` unless it is a gauge."},
	{title: "Connections", families: connections, about: "" +
		"Counted in software by the kernel's connection manager, for every driver."},
	{title: "State and configuration", families: states, about: "" +
		"What there is and how it is set up. Configuration is there to be compared: what differs between ports of one rail is mostly a mistake."},
	{title: "Health", families: health, about: "" +
		"What the driver itself has found to be wrong."},
	{title: "Shares of pods", add: (*registry).addShares, about: "" +
		"What a device counted while it was a pod's, from zero. `attribution` says how that is known: the device is the pod's alone (`exclusive`), " +
		"its queue pairs are counted apart (`qp_counter`), or nobody else used the device (`sole_user`). What is in one of these is not in another, so sums over them are right. Every family above that is about traffic or errors of a function, and not of a physical port, " +
		"has a share of the same meaning. Labels are `pod_namespace`, `pod_name`, `owner_kind`, `owner_namespace`, `owner_name`, `device`, `port`, " +
		"`attribution` and those of the family itself."},
	{title: "Pods", families: pods, about: "" +
		"Which pods use which devices, and what they hold there."},
	{title: "The exporter itself", families: exporter, about: "" +
		"Whether the numbers above can be trusted."},
}

// known is all of the tables, put together.
var known = newRegistry(sets, subjects)
