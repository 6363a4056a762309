package rdmanl

import (
	"github.com/mdlayher/netlink"
)

// Counter is a hardware counter under the driver's name for it.
type Counter struct {
	Name  string `json:"name"`
	Value uint64 `json:"value"`
}

// CounterStatus says of a hardware counter whether it can be switched.
type CounterStatus struct {
	Index    uint32 `json:"index"` // what switches it
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"` // it can be switched on and off
	Enabled  bool   `json:"enabled"`            // it counts; always true where not optional
}

// CounterMode says how QPs of a port are bound to counters of their own.
type CounterMode struct {
	Mode     string `json:"mode"`               // "none", "auto", "manual"; the number in decimal where unknown
	AutoMask uint32 `json:"autoMask,omitempty"` // enum rdma_nl_counter_mask, with bits that have no name yet
	ByType   bool   `json:"byType,omitempty"`   // auto: QPs of one type share a counter
	ByPID    bool   `json:"byPID,omitempty"`    // auto: QPs of one process share a counter
	Optional *bool  `json:"optional,omitempty"` // auto: optional counters are bound too; nil before kernel 6.15
}

// QPCounter is a counter set that QPs of a port are bound to.
type QPCounter struct {
	ID       uint32    `json:"id"`
	Port     int       `json:"port"`
	Mode     string    `json:"mode"`             // as CounterMode.Mode
	QPType   string    `json:"qpType,omitempty"` // the type its QPs have in common, in auto mode by type
	QPNs     []uint32  `json:"qpns,omitempty"`
	Counters []Counter `json:"counters,omitempty"`
	Owner              // what its QPs have in common, in auto mode by process
}

// Bits of enum rdma_nl_counter_mask, and numbers of enum rdma_nl_counter_mode.
const (
	maskQPType = 1 << 0
	maskPID    = 1 << 1

	modeAuto   = 1
	modeManual = 2
)

// Statistics returns the hardware counters of a port in the driver's order
// (RDMA_NLDEV_CMD_STAT_GET, Linux 5.3), without optional ones that are off. It
// costs what the driver's counter query costs, on mlx5 some firmware commands,
// and while QPs are bound to counters another query for each counter set. The
// error is ErrNotSupported where the driver has no hardware counters.
func (c *Client) Statistics(device uint32, port int) ([]Counter, error) {
	r := request{command: CmdStatGet, device: &device, port: &port}
	b, err := c.get(r)
	if err != nil {
		return nil, err
	}
	counters, err := decodeStatistics(b)
	if err != nil {
		return nil, newError(r, err)
	}
	return counters, nil
}

// CounterStatuses returns all hardware counters of a port, also those that are
// off (RDMA_NLDEV_CMD_STAT_GET_STATUS, Linux 5.16). It reads no values. The
// error is ErrNotSupported where the driver has no hardware counters.
func (c *Client) CounterStatuses(device uint32, port int) ([]CounterStatus, error) {
	r := request{command: CmdStatGetStatus, device: &device, port: &port}
	b, err := c.get(r)
	if err != nil {
		return nil, err
	}
	statuses, err := decodeCounterStatuses(b)
	if err != nil {
		return nil, newError(r, err)
	}
	return statuses, nil
}

// CounterMode returns how QPs of a port are bound to counters
// (RDMA_NLDEV_CMD_STAT_GET of QPs, Linux 5.3).
func (c *Client) CounterMode(device uint32, port int) (CounterMode, error) {
	r := request{command: CmdStatGet, device: &device, port: &port, more: func(ae *netlink.AttributeEncoder) {
		ae.Uint32(AttrStatRes, AttrResQP)
		ae.Uint32(AttrStatMode, 0) // asks for the mode; the value does not matter
	}}
	b, err := c.get(r)
	if err != nil {
		return CounterMode{}, err
	}
	mode, err := decodeCounterMode(b)
	if err != nil {
		return CounterMode{}, newError(r, err)
	}
	return mode, nil
}

// QPCounters returns the counters that QPs of a port are bound to, with their
// values (RDMA_NLDEV_CMD_STAT_GET of QPs, dump, Linux 5.3). When the last QP of
// a counter goes, so does the counter, and what it counted moves to
// Statistics. Counters read before an error come with it.
func (c *Client) QPCounters(device uint32, port int) ([]QPCounter, error) {
	r := request{command: CmdStatGet, device: &device, port: &port, more: func(ae *netlink.AttributeEncoder) {
		ae.Uint32(AttrStatRes, AttrResQP)
	}}
	return entries(c, r, AttrStatCounter, AttrStatCounterEntry, (*QPCounter).decode)
}

func decodeStatistics(b []byte) ([]Counter, error) {
	var counters []Counter
	err := attributes(b, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == AttrStatHWCounters {
			counters = decodeCounters(ad)
		}
	})
	if err != nil {
		return nil, err
	}
	return counters, nil
}

// decodeCounters decodes the table of counters that is the current attribute.
func decodeCounters(ad *netlink.AttributeDecoder) []Counter {
	var counters []Counter
	nested(ad, func(table *netlink.AttributeDecoder) {
		if table.Type() != AttrStatHWCounterEntry {
			return
		}
		var counter Counter
		valued := false
		nested(table, func(entry *netlink.AttributeDecoder) {
			switch entry.Type() {
			case AttrStatHWCounterEntryName:
				counter.Name = entry.String()
			case AttrStatHWCounterEntryValue:
				counter.Value, valued = entry.Uint64(), true
			}
		})
		if counter.Name != "" && valued {
			counters = append(counters, counter)
		}
	})
	return counters
}

func decodeCounterStatuses(b []byte) ([]CounterStatus, error) {
	statuses, err := decodeTable(b, AttrStatHWCounters, AttrStatHWCounterEntry, (*CounterStatus).decode)
	if err != nil {
		return nil, err
	}
	for i := range statuses {
		statuses[i].Enabled = statuses[i].Enabled || !statuses[i].Optional
	}
	return statuses, nil
}

func (s *CounterStatus) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case AttrStatHWCounterEntryName:
		s.Name = ad.String()
	case AttrStatHWCounterIndex:
		s.Index = ad.Uint32()
	case AttrStatHWCounterDynamic:
		s.Optional, s.Enabled = true, ad.Uint8() != 0
	}
}

func decodeCounterMode(b []byte) (CounterMode, error) {
	var m CounterMode
	err := attributes(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case AttrStatMode:
			m.Mode = named(counterModes, ad.Uint32())
		case AttrStatAutoModeMask:
			m.AutoMask = ad.Uint32()
			m.ByType, m.ByPID = m.AutoMask&maskQPType != 0, m.AutoMask&maskPID != 0
		case AttrStatOpCounterEnabled:
			m.Optional = new(ad.Uint8() != 0)
		}
	})
	switch {
	case err != nil:
		return CounterMode{}, err
	case m.Mode == "":
		return CounterMode{}, errNoMode
	}
	return m, nil
}

func (q *QPCounter) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case AttrStatCounterID:
		q.ID = ad.Uint32()
	case AttrPortIndex:
		q.Port = int(ad.Uint32())
	case AttrStatMode:
		q.Mode = named(counterModes, ad.Uint32())
	case AttrResType:
		q.QPType = named(qpTypes, uint32(ad.Uint8()))
	case AttrResQP:
		q.QPNs = decodeQPNs(ad)
	case AttrStatHWCounters:
		q.Counters = decodeCounters(ad)
	default:
		q.Owner.decode(ad)
	}
}

// decodeQPNs decodes the table of QPs that is the current attribute.
func decodeQPNs(ad *netlink.AttributeDecoder) []uint32 {
	var qpns []uint32
	nested(ad, func(table *netlink.AttributeDecoder) {
		if table.Type() != AttrResQPEntry {
			return
		}
		nested(table, func(entry *netlink.AttributeDecoder) {
			if entry.Type() == AttrResLQPN {
				qpns = append(qpns, entry.Uint32())
			}
		})
	})
	return qpns
}
