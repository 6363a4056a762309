package ethtool

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// A command is an ETHTOOL_MSG_…_GET of include/uapi/linux/ethtool_netlink.h.
type command uint8

const (
	linkInfoGet  command = unix.ETHTOOL_MSG_LINKINFO_GET
	linkModesGet command = unix.ETHTOOL_MSG_LINKMODES_GET
	linkStateGet command = unix.ETHTOOL_MSG_LINKSTATE_GET
	featuresGet  command = unix.ETHTOOL_MSG_FEATURES_GET
	pauseGet     command = unix.ETHTOOL_MSG_PAUSE_GET
	fecGet       command = unix.ETHTOOL_MSG_FEC_GET
	statsGet     command = unix.ETHTOOL_MSG_STATS_GET
)

func (c command) String() string {
	switch c {
	case linkInfoGet:
		return "LINKINFO_GET"
	case linkModesGet:
		return "LINKMODES_GET"
	case linkStateGet:
		return "LINKSTATE_GET"
	case featuresGet:
		return "FEATURES_GET"
	case pauseGet:
		return "PAUSE_GET"
	case fecGet:
		return "FEC_GET"
	case statsGet:
		return "STATS_GET"
	}
	return strconv.Itoa(int(c))
}

// attrHeader is the number of the header attribute, the same in all commands
// but STATS_GET.
const attrHeader = 1

// headerFlags asks for bitsets as words of bits, in place of a list that
// spells out each bit with its name.
const headerFlags = unix.ETHTOOL_FLAG_COMPACT_BITSETS

// get asks a command about one netdev and has visit called for each attribute
// of the answer.
func (c *Client) get(cmd command, flags uint32, index int, visit visitor) error {
	msgs, err := c.execute(cmd, netlink.Request, headerOnly(index, flags))
	if err == nil && len(msgs) == 0 {
		err = errors.New("no answer")
	}
	if err == nil {
		err = decode(msgs[0].Data, visit)
	}
	if err != nil {
		return &Error{Command: cmd.String(), Netdev: ifindex(index), Err: err}
	}
	return nil
}

// dump asks a command about all netdevs and returns one message for each that
// answers. One netdev that fails ends the kernel's dump, and the error is all
// that is left of it.
func (c *Client) dump(cmd command) ([]genetlink.Message, error) {
	msgs, err := c.execute(cmd, netlink.Request|netlink.Dump, headerOnly(0, 0))
	if err != nil {
		return nil, &Error{Command: cmd.String(), Err: err}
	}
	return msgs, nil
}

// indexes returns the indexes of all netdevs in rising order. It asks for
// their features because the kernel answers that without asking any driver,
// so that no netdev can fail.
func (c *Client) indexes() ([]int, error) {
	msgs, err := c.dump(featuresGet)
	if err != nil {
		return nil, err
	}
	indexes := make([]int, 0, len(msgs))
	for _, m := range msgs {
		if index, ok := headerIndex(m.Data); ok {
			indexes = append(indexes, index)
		}
	}
	slices.Sort(indexes)
	return indexes, nil
}

func (c *Client) execute(cmd command, flags netlink.HeaderFlags, attributes func(*netlink.AttributeEncoder)) ([]genetlink.Message, error) {
	ae := netlink.NewAttributeEncoder()
	attributes(ae)
	data, err := ae.Encode()
	if err != nil {
		return nil, err
	}
	msgs, err := c.nl.Execute(genetlink.Message{
		Header: genetlink.Header{Command: uint8(cmd), Version: unix.ETHTOOL_GENL_VERSION},
		Data:   data,
	}, c.family, flags)
	if err != nil && c.closed.Load() {
		return nil, fs.ErrClosed
	}
	return msgs, err
}

// headerOnly encodes a request that is nothing but its header.
func headerOnly(index int, flags uint32) func(*netlink.AttributeEncoder) {
	return func(ae *netlink.AttributeEncoder) { ae.Nested(attrHeader, requestHeader(index, flags)) }
}

// requestHeader encodes the header of a request. Index 0 names no netdev.
func requestHeader(index int, flags uint32) func(*netlink.AttributeEncoder) error {
	return func(ae *netlink.AttributeEncoder) error {
		if index != 0 {
			ae.Uint32(unix.ETHTOOL_A_HEADER_DEV_INDEX, uint32(index))
		}
		ae.Uint32(unix.ETHTOOL_A_HEADER_FLAGS, headerFlags|flags)
		return nil
	}
}

// A visitor takes one attribute of a message; it ignores those it does not
// know.
type visitor func(*netlink.AttributeDecoder)

// decode has visit called for each attribute of b. The error is that of the
// first attribute of a wrong form, which ends the decoding.
func decode(b []byte, visit visitor) error {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return err
	}
	for ad.Next() {
		visit(ad)
	}
	return ad.Err()
}

// headerIndex returns the index of the netdev that a message is about.
func headerIndex(b []byte) (index int, ok bool) {
	err := decode(b, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == attrHeader {
			nested(ad, func(ad *netlink.AttributeDecoder) {
				if ad.Type() == unix.ETHTOOL_A_HEADER_DEV_INDEX {
					index, ok = int(ad.Uint32()), true
				}
			})
		}
	})
	return index, ok && err == nil
}

// nested has visit called for each attribute inside the current one.
func nested(ad *netlink.AttributeDecoder, visit visitor) {
	ad.Nested(func(ad *netlink.AttributeDecoder) error {
		for ad.Next() {
			visit(ad)
		}
		return nil
	})
}

func ifindex(index int) string { return fmt.Sprintf("ifindex %d", index) }
