package ethtool

import (
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// StandardStat is a counter that means the same with every driver: one of IEEE
// 802.3 clause 30 or of RMON (RFC 2819), under the kernel's name for it.
type StandardStat struct {
	Group string // "eth-phy", "eth-mac", "eth-ctrl", "rmon"
	Name  string // "SymbolErrorDuringCarrier", "FramesTransmittedOK", "etherStatsJabbers"; the number in decimal where unknown
	Value uint64
}

// Numbers of include/uapi/linux/ethtool_netlink.h that statistics take. They
// are exported for those who play the kernel.
const (
	AttrStatsHeader = 2 // ETHTOOL_A_STATS_HEADER, which is another number in all other commands
	AttrStatsGroups = 3 // ETHTOOL_A_STATS_GROUPS, a bitset
	AttrStatsGroup  = 4 // ETHTOOL_A_STATS_GRP

	AttrStatsGroupID   = 2 // ETHTOOL_A_STATS_GRP_ID, within AttrStatsGroup
	AttrStatsGroupStat = 4 // ETHTOOL_A_STATS_GRP_STAT, within AttrStatsGroup
)

// StandardStats returns those of the standard counters that the driver of the
// netdev with an index has, in the kernel's order (Linux 5.13). They are of the
// port, and the driver may have to ask its device. The histograms of RMON are
// left out. The error is [ErrNotSupported] where the driver has none.
func (c *Client) StandardStats(index int) ([]StandardStat, error) {
	msgs, err := c.execute(statsGet, netlink.Request, func(ae *netlink.AttributeEncoder) {
		ae.Nested(AttrStatsHeader, requestHeader(index, 0))
		ae.Nested(AttrStatsGroups, allStandardGroups)
	})
	var stats []StandardStat
	for _, m := range msgs {
		if err == nil {
			stats, err = parseStandardStats(m.Data)
		}
	}
	if err == nil && len(stats) == 0 {
		err = fmt.Errorf("no standard statistics: %w", ErrNotSupported)
	}
	if err != nil {
		return nil, &Error{Command: statsGet.String(), Netdev: ifindex(index), Err: err}
	}
	return stats, nil
}

// allStandardGroups encodes a bitset of the groups that have names here.
func allStandardGroups(ae *netlink.AttributeEncoder) error {
	ae.Flag(unix.ETHTOOL_A_BITSET_NOMASK, true)
	ae.Uint32(unix.ETHTOOL_A_BITSET_SIZE, uint32(len(standardGroups)))
	ae.Uint32(unix.ETHTOOL_A_BITSET_VALUE, 1<<len(standardGroups)-1)
	return nil
}

func parseStandardStats(b []byte) ([]StandardStat, error) {
	var stats []StandardStat
	err := decode(b, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == AttrStatsGroup {
			var g standardGroup
			nested(ad, func(ad *netlink.AttributeDecoder) { stats = g.visit(ad, stats) })
		}
	})
	if err != nil {
		return nil, err
	}
	return stats, nil
}

// standardGroup is a group of statistics, which says first which one it is.
type standardGroup struct{ id *uint32 }

func (g *standardGroup) visit(ad *netlink.AttributeDecoder, stats []StandardStat) []StandardStat {
	switch {
	case ad.Type() == AttrStatsGroupID:
		g.id = new(ad.Uint32())
	case ad.Type() == AttrStatsGroupStat && g.id != nil:
		group, names := groupNames(*g.id)
		nested(ad, func(ad *netlink.AttributeDecoder) {
			stats = append(stats, StandardStat{Group: group, Name: statName(names, ad.Type()), Value: ad.Uint64()})
		})
	}
	return stats
}
