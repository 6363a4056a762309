package address

import (
	"fmt"

	"railhead/internal/ipam/journal"
)

// disk returns where the journal is, and how to let go of it: two agents with
// one journal would give away the same addresses, so it is locked, and whoever
// comes too early tries again until the earlier one has ended.
func (s *Service) disk() (journal.Disk, func(), error) {
	if s.config.Disk != nil {
		return timedDisk{s.config.Disk, s.metrics}, func() {}, nil
	}
	disk, err := journal.OS(s.config.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("directory of the journal of addresses: %w", err)
	}
	return timedDisk{disk, s.metrics}, func() { _ = disk.Close() }, nil
}
