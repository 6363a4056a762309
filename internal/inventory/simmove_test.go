package inventory

import (
	"fmt"
	"slices"
	"strconv"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
)

// appear brings the RDMA device and the netdev of a function into our
// namespace.
func (n *simNode) appear(f *simFunction) Changes {
	n.tb.Helper()
	for _, step := range n.arrival(f) {
		step()
	}
	changed := linkChange(f.link)
	changed.merge(pathChange(f.path + "/net/" + f.netdev))
	changed.merge(pathChange(f.path + "/infiniband/" + f.rdma))
	return changed
}

// vanish takes them to another one, where they are not found.
func (n *simNode) vanish(f *simFunction) Changes {
	n.tb.Helper()
	for _, step := range n.departure(f) {
		step()
	}
	changed := linkChange(f.link)
	changed.merge(pathChange(f.path + "/infiniband/" + f.rdma))
	return changed
}

// move takes the devices of a function away, or brings them back.
func (n *simNode) move(f *simFunction) Changes {
	n.tb.Helper()
	if f.isHere {
		return n.vanish(f)
	}
	n.removeChars(f)
	return n.appear(f)
}

// arrival is what the kernel does when the devices of a function appear, in its
// order: the directory of a device, the links to it and from it, its attributes
// and ports, and only then netlink lists it (device_add and
// enable_device_and_get in drivers/infiniband/core/device.c).
func (n *simNode) arrival(f *simFunction) []func() {
	net, ib := "sys/"+f.path+"/net/"+f.netdev, "sys/"+f.path+"/infiniband/"+f.rdma
	return []func(){
		func() { f.isHere = true; n.mkdir(net) },
		func() { n.link(net+"/device", "sys/"+f.path) },
		func() { n.link("sys/class/net/"+f.netdev, net) },
		func() { n.writeNetdev(f) },
		func() { n.listNetdev(f) },
		func() { n.mkdir(ib) },
		func() { n.link(ib+"/device", "sys/"+f.path) },
		func() { n.link("sys/class/infiniband/"+f.rdma, ib) },
		func() { n.writeRDMA(f) },
		func() { n.writePorts(f) },
		func() { n.listRDMA(f) },
		func() { n.addChars(f) },
	}
}

// departure is what the kernel does when they vanish: the same backwards, but
// that ports go before the links (device_del). The character devices are made
// anew and belong to no namespace.
func (n *simNode) departure(f *simFunction) []func() {
	net, ib := "sys/"+f.path+"/net", "sys/"+f.path+"/infiniband"
	return []func(){
		func() { n.unlistRDMA(f) },
		func() { n.removeChars(f) },
		func() { n.remove(ib + "/" + f.rdma + "/ports"); f.gids = map[int]simGID{} },
		func() { n.remove(ib + "/" + f.rdma + "/device") },
		func() { n.remove("sys/class/infiniband/" + f.rdma) },
		func() { n.remove(ib) },
		func() { n.unlistNetdev(f) },
		func() { n.remove(net + "/" + f.netdev + "/device") },
		func() { n.remove("sys/class/net/" + f.netdev) },
		func() { n.remove(net) },
		func() { n.addChars(f); f.isHere = false },
	}
}

// addSoftware adds a software RDMA device on the netdev of a function.
func (n *simNode) addSoftware(name string, below *simFunction) {
	n.tb.Helper()
	f := &simFunction{path: "devices/virtual", rdma: name, device: n.devices, gidLen: 3, gids: map[int]simGID{}}
	f.netdev, f.link = below.netdev, below.link
	n.devices++
	n.writeRDMA(f)
	n.write("sys/"+f.path+"/infiniband/"+name+"/parent", f.netdev)
	n.writePorts(f)
	n.link("sys/class/infiniband/"+name, "sys/"+f.path+"/infiniband/"+name)
	n.listRDMA(f)
}

func (n *simNode) writeNetdev(f *simFunction) {
	n.tb.Helper()
	n.writeAll("sys/"+f.path+"/net/"+f.netdev, map[string]string{
		"ifindex": strconv.Itoa(f.link), "dev_port": "0", "type": "1", "address": "0c:42:a1:65:12:34",
		"operstate": "up", "carrier": "1", "mtu": "9000", "speed": "400000", "phys_port_name": "p0", "phys_switch_id": "",
	})
}

func (n *simNode) listNetdev(f *simFunction) {
	n.kernel.Change(func(k *fakekernel.Facts) {
		k.Links = append(k.Links, rtnl.Link{
			Index: f.link, Name: f.netdev, Type: 1, Address: "0c:42:a1:65:12:34", Up: true, Running: true, OperState: "up",
			MTU: 9000, MaxMTU: 9978, ParentBus: "pci", ParentDev: f.id,
		})
		slices.SortFunc(k.Links, func(a, b rtnl.Link) int { return a.Index - b.Index })
		k.Settings[f.link] = ethtool.LinkSettings{SpeedMegabits: 400000, MaxSpeedMegabits: 400000, Duplex: "full", LinkDetected: new(true)}
	})
}

func (n *simNode) unlistNetdev(f *simFunction) {
	n.kernel.Change(func(k *fakekernel.Facts) {
		k.Links = slices.DeleteFunc(k.Links, func(l rtnl.Link) bool { return l.Index == f.link })
		k.Addresses = slices.DeleteFunc(k.Addresses, func(a rtnl.Address) bool { return a.LinkIndex == f.link })
		delete(k.Settings, f.link)
	})
}

func (n *simNode) writeRDMA(f *simFunction) {
	n.tb.Helper()
	n.writeAll("sys/"+f.path+"/infiniband/"+f.rdma, map[string]string{
		"node_type": "1: CA", "node_guid": "0c42:a103:0065:1234", "sys_image_guid": "0c42:a103:0065:1234",
		"fw_ver": "28.39.1002", "board_id": "MT_0000000838", "hca_type": "MT4129",
	})
}

// writePorts writes the port of a device, with its default GIDs.
func (n *simNode) writePorts(f *simFunction) {
	n.tb.Helper()
	port := "sys/" + f.path + "/infiniband/" + f.rdma + "/ports/1"
	n.writeAll(port, map[string]string{
		"link_layer": Ethernet, "state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)", "lid": "0x0", "sm_lid": "0x0",
	})
	table := map[string]string{}
	for i := range f.gidLen {
		table[strconv.Itoa(i)] = "0000:0000:0000:0000:0000:0000:0000:0000"
	}
	n.writeAll(port+"/gids", table)
	n.setGID(f, 0, "fe80:0000:0000:0000:0e42:a1ff:fe65:1234", "IB/RoCE v1", f.netdev)
	n.setGID(f, 1, "fe80:0000:0000:0000:0e42:a1ff:fe65:1234", "RoCE v2", f.netdev)
}

func (n *simNode) listRDMA(f *simFunction) {
	n.kernel.Change(func(k *fakekernel.Facts) {
		k.RDMA = append(k.RDMA, rdmanl.Device{
			Index: f.device, Name: f.rdma, NodeType: "ca", NodeGUID: "0c42:a103:0065:1234", SysImageGUID: "0c42:a103:0065:1234",
			Firmware: "28.39.1002", Protocol: "roce", PortCount: 1,
			Ports: []rdmanl.Port{{
				DeviceIndex: f.device, DeviceName: f.rdma, Number: 1, State: "ACTIVE", PhysState: "LINK_UP", NetdevIndex: f.link, NetdevName: f.netdev,
			}},
		})
		slices.SortFunc(k.RDMA, func(a, b rdmanl.Device) int { return int(a.Index) - int(b.Index) })
	})
}

func (n *simNode) unlistRDMA(f *simFunction) {
	n.kernel.Change(func(k *fakekernel.Facts) {
		k.RDMA = slices.DeleteFunc(k.RDMA, func(d rdmanl.Device) bool { return d.Index == f.device })
	})
}

func (n *simNode) addChars(f *simFunction) {
	n.tb.Helper()
	f.char = n.chars
	n.chars++
	for class, name := range map[string]string{"infiniband_verbs": "uverbs", "infiniband_mad": "umad"} {
		name += strconv.Itoa(f.char)
		dir := "sys/" + f.path + "/" + class + "/" + name
		n.writeAll(dir, map[string]string{"dev": fmt.Sprintf("231:%d", f.char), "ibdev": f.rdma})
		if class == "infiniband_mad" {
			n.write(dir+"/port", "1")
		}
		n.link("sys/class/"+class+"/"+name, dir)
		n.write("dev/infiniband/"+name, "")
	}
}

func (n *simNode) removeChars(f *simFunction) {
	n.tb.Helper()
	for class, name := range map[string]string{"infiniband_verbs": "uverbs", "infiniband_mad": "umad"} {
		name += strconv.Itoa(f.char)
		n.remove("sys/" + f.path + "/" + class)
		n.remove("sys/class/" + class + "/" + name)
		n.remove("dev/infiniband/" + name)
	}
}
