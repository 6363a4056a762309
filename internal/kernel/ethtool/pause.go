package ethtool

import (
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Pause is a netdev's link-level flow control. It says nothing of priority
// flow control, which is configured elsewhere.
type Pause struct {
	Autoneg bool `json:"autoneg"`
	Rx      bool `json:"rx"`
	Tx      bool `json:"tx"`
}

// PauseStats is what a netdev counts of link-level flow control. A driver that
// does not count something leaves it nil.
type PauseStats struct {
	TxFrames      *uint64 `json:"txFrames,omitempty"`      // IEEE 802.3 aPAUSEMACCtrlFramesTransmitted
	RxFrames      *uint64 `json:"rxFrames,omitempty"`      // IEEE 802.3 aPAUSEMACCtrlFramesReceived
	TxStormEvents *uint64 `json:"txStormEvents,omitempty"` // times that the device stopped a flood of pause frames
}

// attrPauseStatTxStormEvents is ETHTOOL_A_PAUSE_STAT_TX_PAUSE_STORM_EVENTS of
// include/uapi/linux/ethtool_netlink_generated.h.
const attrPauseStatTxStormEvents = 4

// Pause returns the flow control of the netdev with an index. The error is
// [ErrNotSupported] where the driver has none.
func (c *Client) Pause(index int) (Pause, error) {
	var p Pause
	if err := c.get(pauseGet, 0, index, p.visit); err != nil {
		return Pause{}, err
	}
	return p, nil
}

// PauseStats returns the flow control counters of the netdev with an index.
// It is apart from [Client.Pause] because the driver may have to ask its
// device.
func (c *Client) PauseStats(index int) (PauseStats, error) {
	var s PauseStats
	if err := c.get(pauseGet, unix.ETHTOOL_FLAG_STATS, index, s.visit); err != nil {
		return PauseStats{}, err
	}
	return s, nil
}

func (p *Pause) visit(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case unix.ETHTOOL_A_PAUSE_AUTONEG:
		p.Autoneg = ad.Uint8() != 0
	case unix.ETHTOOL_A_PAUSE_RX:
		p.Rx = ad.Uint8() != 0
	case unix.ETHTOOL_A_PAUSE_TX:
		p.Tx = ad.Uint8() != 0
	}
}

func (s *PauseStats) visit(ad *netlink.AttributeDecoder) {
	if ad.Type() != unix.ETHTOOL_A_PAUSE_STATS {
		return
	}
	nested(ad, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case unix.ETHTOOL_A_PAUSE_STAT_TX_FRAMES:
			s.TxFrames = new(ad.Uint64())
		case unix.ETHTOOL_A_PAUSE_STAT_RX_FRAMES:
			s.RxFrames = new(ad.Uint64())
		case attrPauseStatTxStormEvents:
			s.TxStormEvents = new(ad.Uint64())
		}
	})
}
