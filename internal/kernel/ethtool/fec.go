package ethtool

import (
	"encoding/binary"
	"strconv"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// FEC is a netdev's forward error correction. Modes are "off", "rs", "baser",
// "llrs", or the number of a link mode that is newer than this package.
type FEC struct {
	Auto   bool     `json:"auto"`             // the device chooses
	Active string   `json:"active,omitempty"` // what the link runs with; empty while it is down or where unknown
	Modes  []string `json:"modes,omitempty"`  // what is configured
}

// FECStats is what a netdev counts of forward error correction, as totals over
// its lanes (IEEE 802.3 30.5.1.1.17 and 18). A driver that does not count
// something leaves it nil.
type FECStats struct {
	CorrectedBlocks     *uint64 `json:"correctedBlocks,omitempty"`
	UncorrectableBlocks *uint64 `json:"uncorrectableBlocks,omitempty"`
	CorrectedBits       *uint64 `json:"correctedBits,omitempty"`
}

// Attributes of ETHTOOL_MSG_FEC_GET_REPLY and of the statistics nested in it,
// include/uapi/linux/ethtool_netlink_generated.h.
const (
	attrFECModes  = 2
	attrFECAuto   = 3
	attrFECActive = 4
	attrFECStats  = 5

	attrFECStatCorrected     = 2
	attrFECStatUncorrectable = 3
	attrFECStatCorrectedBits = 4
)

// FEC returns the forward error correction of the netdev with an index. The
// error is [ErrNotSupported] where the driver has none.
func (c *Client) FEC(index int) (FEC, error) {
	var f FEC
	if err := c.get(fecGet, 0, index, f.visit); err != nil {
		return FEC{}, err
	}
	return f, nil
}

// FECStats returns the forward error correction counters of the netdev with an
// index. It is apart from [Client.FEC] because the driver may have to ask its
// device.
func (c *Client) FECStats(index int) (FECStats, error) {
	var s FECStats
	if err := c.get(fecGet, unix.ETHTOOL_FLAG_STATS, index, s.visit); err != nil {
		return FECStats{}, err
	}
	return s, nil
}

func (f *FEC) visit(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case attrFECModes:
		for mode := range setBits(decodeBitset(ad).value) {
			f.Modes = append(f.Modes, fecName(mode))
		}
	case attrFECAuto:
		f.Auto = ad.Uint8() != 0
	case attrFECActive:
		f.Active = fecName(int(ad.Uint32()))
	}
}

func (s *FECStats) visit(ad *netlink.AttributeDecoder) {
	if ad.Type() != attrFECStats {
		return
	}
	nested(ad, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case attrFECStatCorrected:
			s.CorrectedBlocks = fecTotal(ad.Bytes())
		case attrFECStatUncorrectable:
			s.UncorrectableBlocks = fecTotal(ad.Bytes())
		case attrFECStatCorrectedBits:
			s.CorrectedBits = fecTotal(ad.Bytes())
		}
	})
}

// fecTotal returns the first of an array of counters, which is the total; the
// lanes follow where the driver counts them. A counter that the driver does
// not have is an empty array.
func fecTotal(b []byte) *uint64 {
	if len(b) < 8 {
		return nil
	}
	return new(binary.NativeEndian.Uint64(b))
}

// fecName returns the word for a link mode that stands for an FEC mode,
// include/uapi/linux/ethtool.h.
func fecName(mode int) string {
	switch mode {
	case unix.ETHTOOL_LINK_MODE_FEC_NONE_BIT:
		return "off"
	case unix.ETHTOOL_LINK_MODE_FEC_RS_BIT:
		return "rs"
	case unix.ETHTOOL_LINK_MODE_FEC_BASER_BIT:
		return "baser"
	case unix.ETHTOOL_LINK_MODE_FEC_LLRS_BIT:
		return "llrs"
	}
	return strconv.Itoa(mode)
}
