package fakekernel

import (
	"maps"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/ethtool"
)

// standardStats answers with the standard statistics of a link, or of all. It
// does not look at which groups are asked for.
func (k *Kernel) standardStats(q question) answer {
	a := answer{typ: ethtoolFamily}
	for _, i := range k.linksWith(q, maps.Keys(k.facts.NICs)) {
		nic := k.facts.NICs[i]
		if len(nic.Standard) == 0 {
			continue
		}
		t, values := standardTemplate(i, nic.Standard), nic.StandardValues
		header := encodeGeneric(unix.ETHTOOL_MSG_STATS_GET_REPLY, func(*netlink.AttributeEncoder) {})
		a.addLive(i, func() []byte { return slices.Concat(header, t.fill(k, values)) })
	}
	return k.orNone(q, a)
}

func standardTemplate(link int, stats []ethtool.StandardStat) *template {
	t := &template{names: len(stats)}
	t.encode(func(ae *netlink.AttributeEncoder) {
		putLinkHeader(ae, ethtool.AttrStatsHeader, link)
		for len(stats) > 0 {
			n := 1
			for n < len(stats) && stats[n].Group == stats[0].Group {
				n++
			}
			nest(ae, ethtool.AttrStatsGroup, func(ae *netlink.AttributeEncoder) { putStandardGroup(ae, stats[:n]) })
			stats = stats[n:]
		}
	}, ethtool.AttrStatsGroup, ethtool.AttrStatsGroupStat, anyType)
	return t
}

func putStandardGroup(ae *netlink.AttributeEncoder, stats []ethtool.StandardStat) {
	for i, s := range stats {
		group, number, ok := ethtool.StandardStatNumber(s.Group, s.Name)
		if !ok {
			panic("fakekernel: no standard statistic " + s.Group + " " + s.Name)
		}
		if i == 0 {
			ae.Uint32(ethtool.AttrStatsGroupID, group)
		}
		nest(ae, ethtool.AttrStatsGroupStat, func(ae *netlink.AttributeEncoder) { ae.Uint64(number, s.Value) })
	}
}
