package fakekernel

import (
	"maps"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/ethtool"
)

// nicQuestion is a command about what a NIC counts.
type nicQuestion struct {
	request, withStats Request
	reply              uint8
	// put returns what puts the answer, nil where the NIC has none. It is called
	// with the Kernel's lock, and what it returns without.
	put func(*NIC, question) func(*netlink.AttributeEncoder)
}

// nicAnswers answers one question about a link, or about all.
func (k *Kernel) nicAnswers(q question, row nicQuestion) answer {
	a := answer{typ: ethtoolFamily}
	for _, i := range k.linksWith(q, maps.Keys(k.facts.NICs)) {
		put := row.put(k.facts.NICs[i], q)
		if put == nil {
			continue
		}
		a.addLive(i, func() []byte {
			return encodeGeneric(row.reply, func(ae *netlink.AttributeEncoder) {
				putLinkHeader(ae, attrHeader, i)
				put(ae)
			})
		})
	}
	return k.orNone(q, a)
}

func putPause(n *NIC, q question) func(*netlink.AttributeEncoder) {
	if n.Pause == nil {
		return nil
	}
	p, stats := *n.Pause, n.PauseStats
	return func(ae *netlink.AttributeEncoder) {
		ae.Uint8(unix.ETHTOOL_A_PAUSE_AUTONEG, boolByte(p.Autoneg))
		ae.Uint8(unix.ETHTOOL_A_PAUSE_RX, boolByte(p.Rx))
		ae.Uint8(unix.ETHTOOL_A_PAUSE_TX, boolByte(p.Tx))
		if stats != nil && q.flags&unix.ETHTOOL_FLAG_STATS != 0 {
			putPauseStats(ae, stats())
		}
	}
}

func putPauseStats(ae *netlink.AttributeEncoder, s ethtool.PauseStats) {
	nest(ae, unix.ETHTOOL_A_PAUSE_STATS, func(ae *netlink.AttributeEncoder) {
		putOptional64(ae, unix.ETHTOOL_A_PAUSE_STAT_TX_FRAMES, s.TxFrames)
		putOptional64(ae, unix.ETHTOOL_A_PAUSE_STAT_RX_FRAMES, s.RxFrames)
		putOptional64(ae, pauseStatTxStormEvents, s.TxStormEvents)
	})
}

// Attributes that package unix does not have, of
// include/uapi/linux/ethtool_netlink_generated.h.
const (
	pauseStatTxStormEvents = 4

	fecModes  = 2
	fecAuto   = 3
	fecActive = 4
	fecStats  = 5

	fecStatCorrected     = 2
	fecStatUncorrectable = 3
	fecStatCorrectedBits = 4
)

func putFEC(n *NIC, q question) func(*netlink.AttributeEncoder) {
	if n.FEC == nil {
		return nil
	}
	f, stats := *n.FEC, n.FECStats
	var modes []uint
	for _, mode := range f.Modes {
		modes = append(modes, uint(numberOf(fecBits, mode)))
	}
	return func(ae *netlink.AttributeEncoder) {
		putBitset(ae, fecModes, modes, modes)
		ae.Uint8(fecAuto, boolByte(f.Auto))
		if f.Active != "" {
			ae.Uint32(fecActive, numberOf(fecBits, f.Active))
		}
		if stats != nil && q.flags&unix.ETHTOOL_FLAG_STATS != 0 {
			putFECStats(ae, stats())
		}
	}
}

func putFECStats(ae *netlink.AttributeEncoder, s ethtool.FECStats) {
	nest(ae, fecStats, func(ae *netlink.AttributeEncoder) {
		putOptional64(ae, fecStatCorrected, s.CorrectedBlocks)
		putOptional64(ae, fecStatUncorrectable, s.UncorrectableBlocks)
		putOptional64(ae, fecStatCorrectedBits, s.CorrectedBits)
	})
}
