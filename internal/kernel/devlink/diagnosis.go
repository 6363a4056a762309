package devlink

import (
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// diagnosis collects the numbers of a formatted message: a row of items that
// begin and end objects, pairs and arrays, or give a name, or a value in two
// items for its type and data (devlink_fmsg of net/devlink/health.c). A message
// of the netlink holds as many of the items as fit, so that a row goes on in
// the next.
type diagnosis struct {
	name   string // of the next value
	typ    uint8  // of the next value
	values map[string]uint64
	times  map[string]int // how often a number had a name
}

// Types of values, enum devlink_var_attr_type. They are NLA_… of the kernel's
// include/net/netlink.h in older kernels, with the same numbers.
const (
	typeU8  = 1
	typeU32 = 3
	typeU64 = 4
)

// decode takes one message of the answer.
func (d *diagnosis) decode(b []byte) error {
	return each(b, func(ad *netlink.AttributeDecoder) {
		if ad.Type() != unix.DEVLINK_ATTR_FMSG {
			return
		}
		ad.Nested(func(items *netlink.AttributeDecoder) error {
			for items.Next() {
				if err := d.item(items); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (d *diagnosis) item(ad *netlink.AttributeDecoder) error {
	switch ad.Type() {
	case unix.DEVLINK_ATTR_FMSG_OBJ_NAME:
		d.name = ad.String()
	case unix.DEVLINK_ATTR_FMSG_OBJ_VALUE_TYPE:
		d.typ = ad.Uint8()
	case unix.DEVLINK_ATTR_FMSG_OBJ_VALUE_DATA:
		return d.value(ad)
	case unix.DEVLINK_ATTR_FMSG_OBJ_NEST_START, unix.DEVLINK_ATTR_FMSG_ARR_NEST_START, unix.DEVLINK_ATTR_FMSG_NEST_END:
		d.name = "" // it was that of an object or array, or its pair has ended
	}
	return nil
}

// value takes a value, if it is a number that has a name.
func (d *diagnosis) value(ad *netlink.AttributeDecoder) error {
	var v uint64
	switch d.typ {
	case typeU8:
		v = uint64(ad.Uint8())
	case typeU32:
		v = uint64(ad.Uint32())
	case typeU64:
		v = ad.Uint64()
	default:
		return nil
	}
	if err := ad.Err(); err != nil {
		return fmt.Errorf("value of %q: %w", d.name, err)
	}
	if d.name == "" {
		return nil
	}
	if d.values == nil {
		d.values, d.times = map[string]uint64{}, map[string]int{}
	}
	d.values[d.name] = v
	d.times[d.name]++
	return nil
}

// numbers returns the numbers whose names came once.
func (d *diagnosis) numbers() map[string]uint64 {
	found := make(map[string]uint64, len(d.values))
	for name, v := range d.values {
		if d.times[name] == 1 {
			found[name] = v
		}
	}
	return found
}
