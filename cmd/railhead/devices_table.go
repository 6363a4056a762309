package main

import (
	"cmp"

	"railhead/internal/inventory"
)

// devicesTable lists the columns of "railhead devices" in order.
var devicesTable = []column[deviceRow]{
	{title: "RAIL", cell: railCell},
	{title: "RDMA", cell: rdmaCell},
	{title: "KIND", cell: kindCell},
	{title: "DEVICE", cell: func(r deviceRow) string { return r.device.ID }},
	{title: "NETDEV", cell: netdevCell},
	{title: "STATE", cell: ofPort(func(p *inventory.Port) string { return p.State })},
	{title: "LINK", cell: ofPort(func(p *inventory.Port) string { return p.LinkLayer })},
	{title: "SPEED", cell: ofPort(speed)},
	{title: "MTU", cell: mtuCell},
	{title: "NUMA", cell: ofPCI(numaNode)},
	{title: "VFS", cell: vfsCell},
	{title: "NETNS", cell: whereCell},
	{title: "ADDRESSES", cell: addressesCell},
	{title: "MODEL", wide: true, cell: ofPCI(func(p *inventory.PCI) string { return p.Vendor + ":" + p.Device })},
	{title: "DRIVER", wide: true, cell: ofPCI(func(p *inventory.PCI) string { return p.Driver })},
	{title: "FIRMWARE", wide: true, cell: ofRDMA(func(r *inventory.RDMA) string { return r.Firmware })},
	{title: "BOARD", wide: true, cell: ofRDMA(func(r *inventory.RDMA) string { return r.BoardID })},
	{title: "GUID", wide: true, cell: ofRDMA(func(r *inventory.RDMA) string { return r.NodeGUID })},
	{title: "GIDS", wide: true, cell: ofPort(gids)},
	{title: "PCIE", wide: true, cell: ofPCI(pcieLink)},
	{title: "SWITCH", wide: true, cell: ofPCI(func(p *inventory.PCI) string { return cmp.Or(p.Switch, p.RootPort) })},
	{title: "GPU", wide: true, cell: gpuCell},
	{title: "CHARDEVS", wide: true, cell: charDevicesCell},
}
