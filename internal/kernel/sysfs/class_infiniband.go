package sysfs

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
)

// IBDevice is a directory of /sys/class/infiniband. Attributes that a driver
// does not offer are empty.
type IBDevice struct {
	Name         string   // mlx5_0
	Path         string   // real path below sysfs' root: devices/pci0000:16/…/infiniband/mlx5_0
	DevicePath   string   // real path of the device link, below sysfs' root; empty for virtual devices
	Parent       string   // parent: the netdev of a Soft-RoCE device
	NodeType     string   // node_type without its number: "CA", "RNIC"
	NodeGUID     string   // node_guid: 0c42:a103:0065:1234
	SysImageGUID string   // sys_image_guid
	Firmware     string   // fw_ver
	BoardID      string   // board_id
	HCAType      string   // hca_type
	Ports        []IBPort // sorted by number
}

// IBPort is a directory of /sys/class/infiniband/DEV/ports.
type IBPort struct {
	Number      int
	LinkLayer   string // link_layer: "Ethernet" or "InfiniBand"
	State       string // state without its number: "ACTIVE", "DOWN"
	PhysState   string // phys_state without its number: "LinkUp", "Disabled"
	Rate        Rate
	LID         uint32
	SMLID       uint32
	GIDTableLen int   // entries of the GID table, used or not
	GIDs        []GID // entries in use, by index
}

// Rate is the value of a port's rate attribute, "400 Gb/sec (4X NDR)".
type Rate struct {
	Gigabits float64 // per second, all lanes
	Lanes    int     // 4 for 4X; 0 where the kernel does not say
	Speed    string  // "NDR"; empty where the kernel does not say
}

// GID is an entry of a port's GID table.
type GID struct {
	Index  int
	GID    string // gids/N in the kernel's form: fe80:0000:0000:0000:0e42:a1ff:fe65:1234
	Type   string // gid_attrs/types/N: "RoCE v2", "IB/RoCE v1"
	Netdev string // gid_attrs/ndevs/N; empty on InfiniBand and where the netdev is elsewhere
}

const classInfiniband = "class/infiniband"

// IBDeviceNames returns the names of the RDMA devices in natural order. There
// are none where RDMA is not loaded.
func (fs FS) IBDeviceNames() ([]string, error) {
	return fs.names(fs.Sys(classInfiniband))
}

// IBDevices returns the RDMA devices in natural order of their names.
func (fs FS) IBDevices() ([]IBDevice, error) {
	found, err := fs.IBDeviceNames()
	if err != nil {
		return nil, err
	}
	return each(found, fs.IBDevice)
}

// IBDevice returns an RDMA device with its ports and their GIDs. Drivers that
// ask the firmware for the state of a port may take milliseconds to answer.
func (fs FS) IBDevice(name string) (IBDevice, error) {
	d, err := fs.open(classInfiniband, name)
	if err != nil {
		return IBDevice{Name: name}, err
	}
	defer d.close()
	dev := IBDevice{
		Name:         name,
		Path:         d.real,
		DevicePath:   d.link("device"),
		Parent:       d.text("parent"),
		NodeType:     afterNumber(d.text("node_type")),
		NodeGUID:     d.text("node_guid"),
		SysImageGUID: d.text("sys_image_guid"),
		Firmware:     d.text("fw_ver"),
		BoardID:      d.text("board_id"),
		HCAType:      d.text("hca_type"),
		Ports:        readIBPorts(d),
	}
	return dev, d.done()
}

// GIDs returns the entries in use of a port's GID table, by index, and the
// length of the table with those that are not.
func (fs FS) GIDs(device string, port int) (gids []GID, tableLen int, err error) {
	d, err := fs.open(classInfiniband, device)
	if err != nil {
		return nil, 0, err
	}
	defer d.close()
	p, err := d.openSub("ports/" + strconv.Itoa(port))
	if err != nil {
		return nil, 0, err
	}
	defer p.close()
	gids, tableLen = readGIDs(p)
	return gids, tableLen, p.done()
}

func readIBPorts(d *dir) []IBPort {
	all := d.sub("ports")
	if all == nil {
		return nil
	}
	defer all.close()
	var ports []IBPort
	for _, n := range all.numbers() {
		if p := all.sub(strconv.Itoa(n)); p != nil {
			ports = append(ports, readIBPort(p, n))
			d.gone = cmp.Or(d.gone, p.still()) // ports go before their device
			p.close()
		}
	}
	return ports
}

func readIBPort(p *dir, number int) IBPort {
	port := IBPort{
		Number:    number,
		LinkLayer: p.text("link_layer"),
		State:     afterNumber(p.text("state")),
		PhysState: afterNumber(p.text("phys_state")),
		Rate:      value(p, "rate", parseRate, Rate{}),
		LID:       value(p, "lid", parseLID, 0),
		SMLID:     value(p, "sm_lid", parseLID, 0),
	}
	port.GIDs, port.GIDTableLen = readGIDs(p)
	return port
}

// readGIDs reads the attributes of those entries only that hold a GID: the
// kernel has none for the others, and most of a table is empty.
func readGIDs(port *dir) (gids []GID, tableLen int) {
	table := port.sub("gids")
	if table == nil {
		return nil, 0
	}
	defer table.close()
	for _, i := range table.numbers() {
		tableLen = i + 1
		index := strconv.Itoa(i)
		b, err := table.read(index)
		if err != nil {
			table.fail(index, err)
			continue
		}
		if isZeroGID(b) {
			continue
		}
		gid := GID{Index: i, GID: string(b)}
		gid.Type = port.text("gid_attrs/types/" + index)
		gid.Netdev = port.text("gid_attrs/ndevs/" + index)
		gids = append(gids, gid)
	}
	return gids, tableLen
}

// isZeroGID reports whether an entry of a GID table is unused.
func isZeroGID(gid []byte) bool {
	return len(bytes.Trim(gid, "0:")) == 0
}

// parseLID parses a local identifier, which the kernel writes as 0x5, and
// zero as 0 or 0x0.
func parseLID(s string) (uint32, error) {
	if s == "0" {
		return 0, nil
	}
	lid, err := parseHex(s, 32)
	return uint32(lid), err
}

// parseRate parses "400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)" and the older
// "10 Gb/sec (4X)".
func parseRate(s string) (Rate, error) {
	const form = `a rate such as "400 Gb/sec (4X NDR)"`
	number, width, ok := strings.Cut(s, " Gb/sec")
	gigabits, err := parseDecimal(number)
	if !ok || err != nil {
		return Rate{}, wants(s, form)
	}
	rate := Rate{Gigabits: gigabits}
	if width == "" {
		return rate, nil
	}
	inside, closed := strings.CutSuffix(strings.TrimPrefix(width, " ("), ")")
	lanes, speed, _ := strings.Cut(inside, "X")
	rate.Lanes, ok = parseIndex(lanes)
	if !ok || !closed {
		return Rate{}, wants(s, form)
	}
	rate.Speed = strings.TrimPrefix(speed, " ")
	return rate, nil
}
