package rdmanl

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/mdlayher/netlink"
)

// Device is an RDMA device as RDMA_NLDEV_CMD_GET describes it.
type Device struct {
	Index        uint32            `json:"index"`                  // unique for one registration of a device; never reused soon
	Name         string            `json:"name"`                   // mlx5_0
	NodeType     string            `json:"nodeType,omitempty"`     // "ca", "rnic", …; the number in decimal where unknown
	NodeGUID     string            `json:"nodeGUID,omitempty"`     // 0c42:a103:0065:1234, as sysfs writes it
	SysImageGUID string            `json:"sysImageGUID,omitempty"` // likewise
	Firmware     string            `json:"firmware,omitempty"`
	Protocol     string            `json:"protocol,omitempty"` // "ib", "roce", "iw", "opa", "usnic"
	AdaptiveMod  bool              `json:"adaptiveModeration,omitempty"`
	CapFlags     uint64            `json:"capFlags,omitempty"`  // enum ib_device_cap_flags
	Type         string            `json:"type,omitempty"`      // "smi"; empty for an ordinary device
	Parent       string            `json:"parent,omitempty"`    // parent device of a sub-device
	UserNamed    bool              `json:"userNamed,omitempty"` // its name was given from user space
	PortCount    int               `json:"portCount"`
	Ports        []Port            `json:"ports,omitempty"`   // filled by Client.DevicesWithPorts, sorted by number
	Unknown      map[uint16][]byte `json:"unknown,omitempty"` // attributes this version has no name for, by number
}

// Port is a port of an RDMA device as RDMA_NLDEV_CMD_PORT_GET describes it.
type Port struct {
	DeviceIndex  uint32            `json:"deviceIndex"`
	DeviceName   string            `json:"deviceName"`
	Number       int               `json:"number"`
	State        string            `json:"state"`                 // "ACTIVE", "DOWN", …; the number in decimal where unknown
	PhysState    string            `json:"physState"`             // "LINK_UP", "DISABLED", …; likewise
	LinkLayer    string            `json:"linkLayer,omitempty"`   // "Ethernet" or "InfiniBand" where the kernel says
	NetdevIndex  int               `json:"netdevIndex,omitempty"` // 0 when the netdev is in another namespace or there is none
	NetdevName   string            `json:"netdevName,omitempty"`
	LID          uint32            `json:"lid,omitempty"`
	SMLID        uint32            `json:"smLID,omitempty"`
	LMC          uint8             `json:"lmc,omitempty"`
	SubnetPrefix string            `json:"subnetPrefix,omitempty"` // fe80:0000:0000:0000
	CapFlags     uint64            `json:"capFlags,omitempty"`
	Unknown      map[uint16][]byte `json:"unknown,omitempty"`
}

// System is the state of the RDMA subsystem, RDMA_NLDEV_CMD_SYS_GET.
type System struct {
	NetNSMode      string `json:"netnsMode"`                // "shared" or "exclusive"
	CopyOnFork     *bool  `json:"copyOnFork,omitempty"`     // nil before kernel 5.13
	PrivilegedQKey *bool  `json:"privilegedQKey,omitempty"` // nil before kernel 6.7
	MonitorSupport *bool  `json:"monitorSupport,omitempty"` // nil before kernel 6.12
}

// Devices returns the RDMA devices of the socket's namespace, without their
// ports (RDMA_NLDEV_CMD_GET). Devices read before an error come with it.
func (c *Client) Devices() ([]Device, error) {
	r := request{command: CmdGet}
	replies, err := c.dump(r)
	devices, undecoded := decodeEach(r, replies, decodeDevice)
	return devices, errors.Join(err, undecoded)
}

// Device returns one device without its ports (RDMA_NLDEV_CMD_GET). The error
// is fs.ErrNotExist where the socket's namespace has no such device.
func (c *Client) Device(index uint32) (Device, error) {
	r := request{command: CmdGet, device: &index}
	b, err := c.get(r)
	if err != nil {
		return Device{}, err
	}
	device, err := decodeDevice(b)
	if err != nil {
		return Device{}, newError(r, err)
	}
	return device, nil
}

// Ports returns the ports of a device (RDMA_NLDEV_CMD_PORT_GET). The kernel
// ends the list at the first port that its driver cannot query, so there may be
// fewer than Device.PortCount; Port says why. The error is fs.ErrNotExist where
// the socket's namespace has no such device.
func (c *Client) Ports(device uint32) ([]Port, error) {
	r := request{command: CmdPortGet, device: &device}
	replies, err := c.dump(r)
	ports, undecoded := decodeEach(r, replies, decodePort)
	return ports, errors.Join(err, undecoded)
}

// Port returns one port (RDMA_NLDEV_CMD_PORT_GET). The error is fs.ErrNotExist
// where there is no such device or port, or a netdev it needs.
func (c *Client) Port(device uint32, number int) (Port, error) {
	r := request{command: CmdPortGet, device: &device, port: &number}
	b, err := c.get(r)
	if err != nil {
		return Port{}, err
	}
	port, err := decodePort(b)
	if err != nil {
		return Port{}, newError(r, err)
	}
	return port, nil
}

// DevicesWithPorts returns the devices with their ports sorted by number, at
// the price of one request for all devices and one for each. A device that
// vanishes in between is left out; a port that cannot be read is left out, and
// the error says why.
func (c *Client) DevicesWithPorts() ([]Device, error) {
	devices, err := c.Devices()
	errs := []error{err}
	present := devices[:0]
	for _, d := range devices {
		ports, err := c.Ports(d.Index)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		rest, missing := c.missingPorts(d, ports)
		errs = append(errs, err, missing)
		d.Ports = append(ports, rest...)
		slices.SortFunc(d.Ports, func(a, b Port) int { return a.Number - b.Number })
		for i := range d.Ports {
			d.Ports[i].LinkLayer = linkLayer(d.Protocol, d.Ports[i])
		}
		present = append(present, d)
	}
	return present, errors.Join(errs...)
}

// maxPorts bounds what a reply can make us ask: RDMA_MAX_PORTS.
const maxPorts = 1024

// missingPorts asks for each port that the dump of a device's ports did not
// reach, so that one bad port does not hide those behind it.
func (c *Client) missingPorts(d Device, have []Port) ([]Port, error) {
	var (
		ports []Port
		errs  []error
	)
	for n := 1; n <= min(d.PortCount, maxPorts); n++ {
		if slices.ContainsFunc(have, func(p Port) bool { return p.Number == n }) {
			continue
		}
		port, err := c.Port(d.Index, n)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it, or the netdev it needs
		case err != nil:
			errs = append(errs, err)
		default:
			ports = append(ports, port)
		}
	}
	return ports, errors.Join(errs...)
}

// linkLayer completes the link layer of a port. The kernel tells a subnet
// prefix of InfiniBand ports only, and the protocol of the first port for the
// whole device; a later port of an "ib" device without a prefix may be an
// Ethernet port of a mixed mlx4 card.
func linkLayer(protocol string, p Port) string {
	if p.LinkLayer != "" || protocol == "ib" && p.Number > 1 {
		return p.LinkLayer
	}
	return protocolLinkLayers[protocol]
}

func decodeDevice(b []byte) (Device, error) {
	var d Device
	indexed := false
	err := attributes(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case AttrDevIndex:
			d.Index, indexed = ad.Uint32(), true
		case AttrDevName:
			d.Name = ad.String()
		case AttrPortIndex: // in this command, the number of the last port
			d.PortCount = int(ad.Uint32())
		case AttrCapFlags:
			d.CapFlags = ad.Uint64()
		case AttrFWVersion:
			d.Firmware = ad.String()
		case AttrNodeGUID:
			d.NodeGUID = groups(ad.Uint64())
		case AttrSysImageGUID:
			d.SysImageGUID = groups(ad.Uint64())
		case AttrDevNodeType:
			d.NodeType = named(nodeTypes, uint32(ad.Uint8()))
		case AttrDevProtocol:
			d.Protocol = ad.String()
		case AttrDevDIM:
			d.AdaptiveMod = ad.Uint8() != 0
		case AttrDevType:
			d.Type = named(deviceTypes, uint32(ad.Uint8()))
		case AttrParentName:
			d.Parent = ad.String()
		case AttrNameAssignType:
			d.UserNamed = ad.Uint8() == nameAssignedByUser
		default:
			keep(&d.Unknown, ad)
		}
	})
	switch {
	case err != nil:
		return Device{}, err
	case !indexed || d.Name == "":
		return Device{}, errNoHandle
	}
	return d, nil
}

// nameAssignedByUser is RDMA_NAME_ASSIGN_TYPE_USER.
const nameAssignedByUser = 1

func decodePort(b []byte) (Port, error) {
	var p Port
	indexed, numbered := false, false
	err := attributes(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case AttrDevIndex:
			p.DeviceIndex, indexed = ad.Uint32(), true
		case AttrDevName:
			p.DeviceName = ad.String()
		case AttrPortIndex:
			p.Number, numbered = int(ad.Uint32()), true
		case AttrPortState:
			p.State = named(portStates, uint32(ad.Uint8()))
		case AttrPortPhysState:
			p.PhysState = named(physStates, uint32(ad.Uint8()))
		case AttrNetdevIndex:
			p.NetdevIndex = int(ad.Uint32())
		case AttrNetdevName:
			p.NetdevName = ad.String()
		case AttrLID:
			p.LID = ad.Uint32()
		case AttrSMLID:
			p.SMLID = ad.Uint32()
		case AttrLMC:
			p.LMC = ad.Uint8()
		case AttrSubnetPrefix:
			p.SubnetPrefix, p.LinkLayer = groups(ad.Uint64()), protocolLinkLayers["ib"]
		case AttrCapFlags:
			p.CapFlags = ad.Uint64()
		default:
			keep(&p.Unknown, ad)
		}
	})
	switch {
	case err != nil:
		return Port{}, err
	case !indexed || p.DeviceName == "":
		return Port{}, errNoHandle
	case !numbered:
		return Port{}, errNoPort
	}
	return p, nil
}

// groups writes a GUID or prefix as sysfs does. nldev gives the number in host
// order, so that its most significant 16 bits come first: 0c42:a103:0065:1234.
func groups(v uint64) string {
	h := fmt.Sprintf("%016x", v)
	return h[:4] + ":" + h[4:8] + ":" + h[8:12] + ":" + h[12:]
}
