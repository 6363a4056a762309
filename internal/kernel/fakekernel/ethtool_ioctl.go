package fakekernel

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/ethtool"
)

// Sizes of include/uapi/linux/ethtool.h.
const (
	stringSetStats = 1   // ETH_SS_STATS
	stringSize     = 32  // ETH_GSTRING_LEN, and that of strings in struct ethtool_drvinfo
	stringsHeader  = 12  // struct ethtool_gstrings: cmd, string_set, len
	statsHeader    = 8   // struct ethtool_stats: cmd, n_stats
	drvinfoSize    = 196 // struct ethtool_drvinfo
)

// ioctl answers a SIOCETHTOOL about a link by writing over the request in data.
// The error is a unix.Errno.
func (s *socket) ioctl(netdev string, data []byte) error {
	if len(data) < stringsHeader {
		return unix.EFAULT
	}
	k := s.kernel
	q := question{request: ioctlRequest(data), kind: netLink, name: netdev, locate: (*Kernel).linkNamed}
	if err := k.arrive(&q, s.closed); err != nil {
		return err
	}
	n, values, errno := k.answerIoctl(q, data)
	if errno != 0 {
		return errno
	}
	if q.request == GetStats {
		k.writeStats(data, n, values)
	}
	return nil
}

func ioctlRequest(data []byte) Request {
	switch command := binary.NativeEndian.Uint32(data); {
	case command == unix.ETHTOOL_GDRVINFO:
		return GetDriverInfo
	case command == unix.ETHTOOL_GSTRINGS && binary.NativeEndian.Uint32(data[4:]) == stringSetStats:
		return GetStatNames
	case command == unix.ETHTOOL_GSTATS:
		return GetStats
	}
	return anyOtherThing
}

// answerIoctl writes all but statistics, and returns how many of these there
// are and what says their values.
func (k *Kernel) answerIoctl(q question, data []byte) (n int, values func([]uint64), errno unix.Errno) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !q.about {
		return 0, nil, unix.ENODEV
	}
	if errno := k.refused(q); errno != 0 {
		return 0, nil, errno
	}
	nic := k.facts.NICs[q.object]
	switch {
	case nic == nil:
	case q.request == GetDriverInfo && nic.Driver != nil:
		return 0, nil, writeDriverInfo(data, *nic.Driver)
	case q.request == GetStatNames && nic.StatNames != nil:
		return 0, nil, writeStrings(data, nic.StatNames)
	case q.request == GetStats && nic.StatNames != nil:
		n = len(nic.StatNames)
		if len(data) < statsHeader+8*n {
			return 0, nil, unix.EFAULT
		}
		return n, nic.Stats, 0
	}
	return 0, nil, unix.EOPNOTSUPP
}

func writeDriverInfo(data []byte, info ethtool.DriverInfo) unix.Errno {
	if len(data) < drvinfoSize {
		return unix.EFAULT
	}
	clear(data[4:drvinfoSize])
	for i, s := range []string{info.Driver, info.Version, info.Firmware, info.BusInfo} {
		copy(data[4+i*stringSize:4+(i+1)*stringSize-1], s)
	}
	return 0
}

func writeStrings(data []byte, names []string) unix.Errno {
	if len(data) < stringsHeader+stringSize*len(names) {
		return unix.EFAULT
	}
	putUint32(data[8:], uint32(len(names)))
	for i, name := range names {
		field := data[stringsHeader+i*stringSize:][:stringSize]
		clear(field[copy(field, name):])
	}
	return 0
}

// writeStats writes statistics; none where another number was asked for, as
// newer kernels do.
func (k *Kernel) writeStats(data []byte, n int, values func([]uint64)) {
	if binary.NativeEndian.Uint32(data[4:]) != uint32(n) {
		putUint32(data[4:], 0)
		return
	}
	data = data[statsHeader:][:8*n]
	if values == nil {
		clear(data)
		return
	}
	k.withValues(n, values, func(dst []uint64) {
		for i, v := range dst {
			binary.NativeEndian.PutUint64(data[8*i:], v)
		}
	})
}
