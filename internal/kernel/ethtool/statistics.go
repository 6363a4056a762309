package ethtool

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	stringSetStats = 1 // ETH_SS_STATS
	stringSize     = 32

	stringsHeader = 12 // struct ethtool_gstrings: cmd, string_set, len
	statsHeader   = 8  // struct ethtool_stats: cmd, n_stats
)

// readAttempts bounds how often names are read again for statistics that
// change faster than they can be read.
const readAttempts = 3

// Statistics reads the driver's own statistics of one netdev, as ethtool -S
// shows them. It is not safe for concurrent use.
//
// It notices a driver whose number of statistics changes, as when the number
// of queues is set. It cannot notice another netdev that has taken the name and
// has as many: start anew when a netdev is added or renamed.
type Statistics struct {
	netdev string
	fresh  func(names []string)
	names  []string // nil until read
	values []uint64
}

// NewStatistics returns the statistics of the netdev with a name, of which
// nothing is read yet. Fresh, if not nil, is called with names that were read,
// and may put the same text of elsewhere in their place.
func NewStatistics(name string, fresh func(names []string)) *Statistics {
	return &Statistics{netdev: name, fresh: fresh}
}

// Read returns the names and, in the same order, the values. Names are read
// the first time and when their number changes: as long as names is the same
// slice, they are the same. Both slices are good until the next Read and must
// not be written. The error is [ErrNotSupported] where the driver has no
// statistics and fs.ErrNotExist where the netdev is gone.
func (s *Statistics) Read(c *Client) (names []string, values []uint64, err error) {
	for range readAttempts {
		if err = s.readNames(c); err != nil {
			return nil, nil, err
		}
		err = c.Stats(s.netdev, s.values)
		if err == nil {
			return s.names, s.values, nil
		}
		if !errors.Is(err, ErrStatsChanged) {
			return nil, nil, err
		}
		s.names = nil
	}
	return nil, nil, err
}

func (s *Statistics) readNames(c *Client) error {
	if s.names != nil {
		return nil
	}
	names, err := c.StatNames(s.netdev)
	if err != nil {
		return err
	}
	if s.fresh != nil {
		s.fresh(names)
	}
	s.names, s.values = names, make([]uint64, len(names))
	return nil
}

// StatNames returns the names of a netdev's driver statistics in the order of
// their values, ETHTOOL_GSTRINGS of ETH_SS_STATS. They are the driver's own:
// any text of up to 32 bytes, not always distinct. The error is
// [ErrNotSupported] where the driver has none.
func (c *Client) StatNames(netdev string) (names []string, err error) {
	err = c.withArena("GSTRINGS", netdev, func(arena []byte) error {
		binary.NativeEndian.PutUint32(arena, unix.ETHTOOL_GSTRINGS)
		binary.NativeEndian.PutUint32(arena[4:], stringSetStats)
		binary.NativeEndian.PutUint32(arena[8:], 0) // as many as there are
		if err := c.ioctl(netdev, arena); err != nil {
			return arenaError(err, arena)
		}
		names, err = parseStrings(arena)
		return err
	})
	return names, err
}

// Stats reads a netdev's driver statistics, ETHTOOL_GSTATS, into dst, which
// must have as many elements as there are names. The error is [ErrStatsChanged]
// where the driver has another number of statistics by now; dst is not written
// then. Stats allocates nothing.
func (c *Client) Stats(netdev string, dst []uint64) error {
	return c.withArena("GSTATS", netdev, func(arena []byte) error {
		// Newer kernels answer another number than was asked for with 0,
		// older ones do not look at it.
		binary.NativeEndian.PutUint32(arena, unix.ETHTOOL_GSTATS)
		binary.NativeEndian.PutUint32(arena[4:], uint32(len(dst)))
		if err := c.ioctl(netdev, arena); err != nil {
			return arenaError(err, arena)
		}
		return parseStats(arena, dst)
	})
}

// arenaError explains the errno of an answer that ran into the arena's guard.
func arenaError(err error, arena []byte) error {
	if errors.Is(err, unix.EFAULT) {
		return fmt.Errorf("answer of more than %d bytes: %w", len(arena), err)
	}
	return err
}

// parseStrings takes a struct ethtool_gstrings with its strings, which need
// not be terminated.
func parseStrings(data []byte) ([]string, error) {
	if len(data) < stringsHeader {
		return nil, fmt.Errorf("%d bytes of strings, want at least %d", len(data), stringsHeader)
	}
	n := int64(binary.NativeEndian.Uint32(data[8:]))
	data = data[stringsHeader:]
	if n > int64(len(data)/stringSize) {
		return nil, fmt.Errorf("%d strings in %d bytes", n, len(data))
	}
	names := make([]string, n)
	for i := range names {
		names[i] = cString(data[i*stringSize : (i+1)*stringSize])
	}
	return names, nil
}

// parseStats takes a struct ethtool_stats with its values.
func parseStats(data []byte, dst []uint64) error {
	if len(data) < statsHeader {
		return fmt.Errorf("%d bytes of statistics, want at least %d", len(data), statsHeader)
	}
	n := int64(binary.NativeEndian.Uint32(data[4:]))
	data = data[statsHeader:]
	if n != int64(len(dst)) {
		return fmt.Errorf("%w: %d, asked for %d", ErrStatsChanged, n, len(dst))
	}
	if n > int64(len(data)/8) {
		return fmt.Errorf("%d statistics in %d bytes", n, len(data))
	}
	for i := range dst {
		dst[i] = binary.NativeEndian.Uint64(data[8*i:])
	}
	return nil
}
