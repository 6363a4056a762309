package counters

import (
	"railhead/internal/kernel/rdmanl"
)

// statisticsAsker asks for the RDMA statistics of a port, all at once.
type statisticsAsker struct{ port rdmanl.PortStatistics }

func newStatisticsAsker(device uint32, port int) *statisticsAsker {
	return &statisticsAsker{rdmanl.PortStatistics{Device: device, Port: port}}
}

func (s *statisticsAsker) ask(a Access) (names []string, values []uint64, err error) {
	return s.port.Read(a.RDMA)
}
