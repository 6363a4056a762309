package simulation

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// removeNetdevFiles takes the netdev out of sysfs.
func (f *function) removeNetdevFiles() {
	f.netPlace.tree.remove(f.netDir())
	f.netPlace.tree.remove("sys/class/net/" + f.name)
}

// removeRDMAFiles takes the RDMA device out of sysfs.
func (f *function) removeRDMAFiles() {
	f.place.tree.remove(f.rdmaDir())
	f.place.tree.remove("sys/class/infiniband/" + f.rdma)
}

// addNetdevFiles writes the netdev into the sysfs of the namespace in which it
// is.
func (f *function) addNetdevFiles() {
	tree, dir := f.netPlace.tree, f.netDir()
	typ, address := "1", f.mac
	if f.isInfiniBand() {
		typ, address = "32", f.hardwareAddress()
	}
	tree.writeAll(dir, map[string]string{
		"ifindex": strconv.Itoa(f.link), "dev_port": "0", "type": typ, "address": address, "mtu": strconv.Itoa(f.mtu()),
	})
	if f.pci != "" {
		tree.link(dir+"/device", "sys/"+f.path)
	}
	f.writeTrust(dir)
	tree.link("sys/class/net/"+f.name, dir)
}

// hardwareAddress is the link layer address of IPoIB: flags and QP number, then
// the GID.
func (f *function) hardwareAddress() string {
	guid := binary.BigEndian.AppendUint64(nil, f.guid)
	return "00:00:01:07:fe:80:00:00:00:00:00:00:" + net.HardwareAddr(guid).String()
}

func (f *function) mtu() int {
	if f.real != nil {
		return f.real.link.MTU
	}
	if f.isInfiniBand() {
		return 2044
	}
	return f.card.spec.MTU
}

// addRDMAFiles writes the RDMA device into the sysfs of the namespace in which
// it is.
func (f *function) addRDMAFiles() {
	tree, dir, d := f.place.tree, f.rdmaDir(), f.card.driver
	tree.writeAll(dir, map[string]string{
		"node_type": d.nodeType, "node_guid": f.nodeGUID(), "sys_image_guid": f.imageGUID(), "fw_ver": f.card.spec.Firmware,
	})
	for name, value := range map[string]string{"board_id": d.board, "hca_type": d.hca} {
		if value != "" {
			tree.write(dir+"/"+name, value)
		}
	}
	port := dir + "/ports/1"
	lid := "0x0"
	if f.isInfiniBand() {
		lid = fmt.Sprintf("0x%x", f.lid())
	}
	tree.writeAll(port, map[string]string{"link_layer": f.linkLayer(), "lid": lid, "sm_lid": smLID(lid)})
	f.writeGIDs(port)
	f.writeTrafficClass(dir)
	if f.pci != "" {
		tree.link(dir+"/device", "sys/"+f.path)
	} else {
		tree.write(dir+"/parent", f.netdev)
	}
	tree.link("sys/class/infiniband/"+f.rdma, dir)
}

// lid is the local identifier that a subnet manager gave the port.
func (f *function) lid() uint32 { return uint32(0x20 + f.card.number) }

func smLID(lid string) string {
	if lid == "0x0" {
		return lid
	}
	return "0x1"
}

// imageGUID is that of the card, which its functions share.
func (f *function) imageGUID() string { return f.card.functions[0].nodeGUID() }

// Sizes of GID tables.
const (
	gidsOfPF = 32
	gidsOfVF = 16
)

// writeGIDs writes the GID table: of its own address and, on RoCE, of the IP
// address, each by the version of RoCE.
func (f *function) writeGIDs(port string) {
	size := gidsOfPF
	if f.vf >= 0 {
		size = gidsOfVF
	}
	gids := f.gids()
	for i := range size {
		index := strconv.Itoa(i)
		if i >= len(gids) {
			f.place.tree.write(port+"/gids/"+index, "0000:0000:0000:0000:0000:0000:0000:0000")
			continue
		}
		f.place.tree.write(port+"/gids/"+index, gids[i].gid)
		f.place.tree.write(port+"/gid_attrs/types/"+index, gids[i].typ)
		if f.isTied() && !f.isInfiniBand() {
			f.place.tree.write(port+"/gid_attrs/ndevs/"+index, f.name)
		}
	}
}

// isTied tells whether the RDMA device and its netdev are in one namespace.
func (f *function) isTied() bool { return f.netdev != "" && f.place == f.netPlace }

type gid struct{ gid, typ string }

func (f *function) gids() []gid {
	local := "fe80:0000:0000:0000:" + guidText(f.guid)
	if f.isInfiniBand() || f.netdev == "" {
		return []gid{{local, "IB/RoCE v1"}}
	}
	local = "fe80:0000:0000:0000:" + guidText(f.interfaceID())
	gids := []gid{{local, "IB/RoCE v1"}, {local, "RoCE v2"}}
	for _, a := range f.addresses() {
		if text := gidOf(a.Prefix.Addr()); text != local {
			gids = append(gids, gid{text, "IB/RoCE v1"}, gid{text, "RoCE v2"})
		}
	}
	return gids
}

// gidOf is the GID of an IP address.
func gidOf(a netip.Addr) string {
	b := a.As16()
	return guidText(binary.BigEndian.Uint64(b[:8])) + ":" + guidText(binary.BigEndian.Uint64(b[8:]))
}

// interfaceID is that of the link-local address of the netdev: the bit of the
// first byte that says who gave the address is the other way round there.
func (f *function) interfaceID() uint64 {
	const low = 0xffffff
	return (f.guid>>40^0x020000)<<40 | 0xfffe<<24 | f.guid&low
}

// linkLocal is the link-local address of the netdev.
func (f *function) linkLocal() netip.Prefix {
	b := [16]byte{0: 0xfe, 1: 0x80}
	for i := range 8 {
		b[8+i] = byte(f.interfaceID() >> (56 - 8*i))
	}
	return netip.PrefixFrom(netip.AddrFrom16(b), 64)
}

// writeState writes what goes by the state of the port.
func (f *function) writeState() {
	tree, state := f.place.tree, f.card.state
	port := map[string]string{"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": rateText(state)}
	net := map[string]string{"operstate": "up", "carrier": "1", "speed": strconv.Itoa(state.speed * 1000)}
	if state.isDown {
		port = map[string]string{"state": "1: DOWN", "phys_state": "3: Disabled", "rate": rateText(state)}
		if f.isInfiniBand() {
			port["phys_state"] = "2: Polling"
		}
		net = map[string]string{"operstate": "down", "carrier": "0", "speed": "-1"}
	}
	tree.writeAll(f.rdmaDir()+"/ports/1", port)
	if f.netPlace != nil {
		f.netPlace.tree.writeAll(f.netDir(), net)
	}
}

func rateText(s portState) string {
	width := strings.TrimSpace(fmt.Sprintf("%dX %s", s.lanes, laneNames[s.speed/s.lanes]))
	return fmt.Sprintf("%d Gb/sec (%s)", s.speed, width)
}

// writeCounters writes those counters that are files.
func (f *function) writeCounters(t time.Duration) {
	port := f.rdmaDir() + "/ports/1/"
	f.writeValues(port+"counters/", f.pma, t)
	f.writeValues(port+"hw_counters/", f.hardware, t)
	f.writeValues(port, f.cm, t)
	f.writeValues(f.rdmaDir()+"/hw_counters/", f.whole, t)
}

func (f *function) writeValues(dir string, counters []counter, t time.Duration) {
	if len(counters) == 0 {
		return
	}
	values := make([]uint64, len(counters))
	f.card.values(f, counters, t, values)
	for i, c := range counters {
		if !c.isOff {
			f.place.tree.write(dir+c.name, strconv.FormatUint(values[i], 10))
		}
	}
}
