package counters

import (
	"errors"
	"slices"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/rtnl"
)

// driverStatsAsker asks for the driver's own statistics of a netdev.
type driverStatsAsker struct{ statistics *ethtool.Statistics }

func newDriverStatsAsker(netdev, driver string) driverStatsAsker {
	return driverStatsAsker{ethtool.NewStatistics(netdev, func(names []string) { known.share(driverStats, driver, names) })}
}

func (d driverStatsAsker) ask(a Access) (names []string, values []uint64, err error) {
	return d.statistics.Read(a.Ethtool)
}

// standardAsker asks for the statistics that ethtool defines for all drivers.
type standardAsker struct {
	index  int
	names  []string
	values []uint64
}

func (s *standardAsker) ask(a Access) (names []string, values []uint64, err error) {
	if s.names == nil {
		for _, r := range standardStats.rows {
			s.names = append(s.names, r.key)
		}
		s.values = make([]uint64, len(s.names))
	}
	for i := range s.values {
		s.values[i] = absent
	}
	lacking := 0
	var errs []error
	for _, ask := range []func(Access) error{s.groups, s.pause, s.fec} {
		switch err := ask(a); {
		case isLacking(err):
			lacking++
		case err != nil:
			errs = append(errs, err)
		}
	}
	if lacking == 3 {
		return nil, nil, ethtool.ErrNotSupported
	}
	return s.names, s.values, errors.Join(errs...)
}

func (s *standardAsker) put(name string, value *uint64) {
	if i := slices.Index(s.names, name); i >= 0 && value != nil {
		s.values[i] = *value
	}
}

func (s *standardAsker) groups(a Access) error {
	stats, err := a.Ethtool.StandardStats(s.index)
	for i := range stats {
		s.put(stats[i].Name, &stats[i].Value)
	}
	return err
}

func (s *standardAsker) pause(a Access) error {
	stats, err := a.Ethtool.PauseStats(s.index)
	s.put("pause_rx_frames", stats.RxFrames)
	s.put("pause_tx_frames", stats.TxFrames)
	s.put("pause_tx_storm_events", stats.TxStormEvents)
	return err
}

func (s *standardAsker) fec(a Access) error {
	stats, err := a.Ethtool.FECStats(s.index)
	s.put("fec_corrected_bits", stats.CorrectedBits)
	s.put("fec_corrected_blocks", stats.CorrectedBlocks)
	s.put("fec_uncorrectable_blocks", stats.UncorrectableBlocks)
	return err
}

// prioritiesAsker asks for the priority flow control of a netdev.
type prioritiesAsker struct {
	netdev string
	names  []string
	values []uint64
}

func (p *prioritiesAsker) ask(a Access) (names []string, values []uint64, err error) {
	pfc, err := a.Links.PFC(p.netdev)
	if err != nil {
		return nil, nil, err
	}
	if p.names == nil {
		p.names = priorityNames()
	}
	p.values = appendPriorities(p.values[:0], &pfc)
	return p.names, p.values, nil
}

// priorityNames are the keys of the table in the order of appendPriorities.
func priorityNames() []string {
	var names []string
	for _, r := range dcbStats.rows {
		for i := range digits {
			names = append(names, expand(r.key, digits[i]))
		}
	}
	return names
}

func appendPriorities(values []uint64, pfc *rtnl.PFC) []uint64 {
	for priority := range len(digits) {
		values = append(values, uint64(pfc.Enabled>>priority&1))
	}
	values = append(values, pfc.Indications[:]...)
	return append(values, pfc.Requests[:]...)
}
