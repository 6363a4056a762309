package rdmanl

import (
	"fmt"
	"syscall"

	"github.com/mdlayher/netlink"
)

// CharDevice is a character device of an RDMA device, or of the subsystem.
type CharDevice struct {
	Name     string  `json:"name"` // uverbs0; the node is /dev/infiniband/uverbs0
	Major    uint32  `json:"major"`
	Minor    uint32  `json:"minor"`
	ABI      uint64  `json:"abi"`
	DriverID *uint32 `json:"driverID,omitempty"` // enum rdma_driver_id; uverbs of some drivers only
}

// CharDevice returns the character device of a kind (RDMA_NLDEV_CMD_GET_CHARDEV,
// Linux 5.3): "uverbs" of a device, "umad" or "issm" of a port, or the one
// "rdma_cm", for which device and port do not matter. For "uverbs" port is 0.
// The kernel loads the module that offers the kind. The error is
// ErrNotSupported where there is no such character device.
//
// A move between namespaces and a rebind make the device anew: ask again.
func (c *Client) CharDevice(kind string, device uint32, port int) (CharDevice, error) {
	r := request{command: CmdGetCharDev, more: func(ae *netlink.AttributeEncoder) {
		ae.String(AttrCharDevType, kind)
	}}
	switch kind {
	case "rdma_cm":
	case "umad", "issm":
		r.device, r.port = &device, &port
		if port < 1 {
			return CharDevice{}, fmt.Errorf("character device %q belongs to a port: port %d: want 1 or more", kind, port)
		}
	case "uverbs":
		r.device = &device
		if port != 0 {
			return CharDevice{}, fmt.Errorf("character device %q belongs to a device: port %d: want 0", kind, port)
		}
	default:
		return CharDevice{}, fmt.Errorf("character device %q: want \"uverbs\", \"umad\", \"issm\" or \"rdma_cm\"", kind)
	}
	b, err := c.get(r)
	if err != nil {
		return CharDevice{}, refine(err, syscall.EOPNOTSUPP, finding{
			ErrNotSupported,
			"there is no " + kind + ": its module is not loaded, or the device does not offer it",
		})
	}
	char, err := decodeCharDevice(b)
	if err != nil {
		return CharDevice{}, newError(r, err)
	}
	return char, nil
}

func decodeCharDevice(b []byte) (CharDevice, error) {
	var d CharDevice
	numbered := false
	err := attributes(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case AttrCharDevName:
			d.Name = ad.String()
		case AttrCharDev:
			d.Major, d.Minor = majorMinor(ad.Uint64())
			numbered = true
		case AttrCharDevABI:
			d.ABI = ad.Uint64()
		case AttrUverbsDriverID:
			d.DriverID = new(ad.Uint32())
		}
	})
	switch {
	case err != nil:
		return CharDevice{}, err
	case d.Name == "" || !numbered:
		return CharDevice{}, errNoCharDev
	}
	return d, nil
}

// majorMinor decodes the kernel's new_encode_dev (include/linux/kdev_t.h): 8
// bits of the minor below, then 12 bits of the major, then 12 bits of the minor.
func majorMinor(dev uint64) (major, minor uint32) {
	return uint32(dev>>8) & 0xfff, uint32(dev)&0xff | uint32(dev>>12)&0xfff00
}
