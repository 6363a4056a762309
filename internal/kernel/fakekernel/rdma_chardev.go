package fakekernel

import (
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rdmanl"
)

// charDevice describes a character device of a device, of a port or of the
// subsystem.
func (k *Kernel) charDevice(q question) (a answer) {
	var char *rdmanl.CharDevice
	switch kind := text(q.body, rdmanl.AttrCharDevType); kind {
	case "rdma_cm":
		char = k.facts.RDMACM
	case "uverbs":
		if k.device(q) == nil {
			return answer{errno: unix.EINVAL}
		}
		char = k.hca(q).Uverbs
	case "umad", "issm":
		p, errno := k.hcaPort(q)
		if errno != 0 {
			return answer{errno: errno}
		}
		char = p.Umad
		if kind == "issm" {
			char = p.Issm
		}
	}
	if char == nil {
		return answer{errno: unix.EOPNOTSUPP}
	}
	a.add(q.object, encode(func(ae *netlink.AttributeEncoder) {
		ae.String(rdmanl.AttrCharDevName, char.Name)
		ae.Uint64(rdmanl.AttrCharDev, deviceNumber(char.Major, char.Minor))
		ae.Uint64(rdmanl.AttrCharDevABI, char.ABI)
		putOptional32(ae, rdmanl.AttrUverbsDriverID, char.DriverID)
	}))
	return a
}

// deviceNumber is the kernel's new_encode_dev (include/linux/kdev_t.h).
func deviceNumber(major, minor uint32) uint64 {
	return uint64(minor&0xff | major<<8 | minor&^0xff<<12)
}
