package ethtool

import (
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"
)

// DriverInfo is the driver of a netdev, ETHTOOL_GDRVINFO.
type DriverInfo struct {
	Driver   string `json:"driver"`
	Version  string `json:"version,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	BusInfo  string `json:"busInfo,omitempty"` // 0000:17:00.0
}

// drvinfoSize is the size of struct ethtool_drvinfo, which begins with the
// command and then has strings of 32 bytes each: driver, version, firmware
// and bus.
const drvinfoSize = 196

// DriverInfo returns the driver of the netdev with a name. The kernel fills in
// what it can where the driver says nothing, so that most netdevs have one; a
// netdev without a driver, such as lo, is [ErrNotSupported].
func (c *Client) DriverInfo(name string) (DriverInfo, error) {
	var info DriverInfo
	err := c.withArena("GDRVINFO", name, func(arena []byte) error {
		data := arena[:drvinfoSize]
		clear(data)
		binary.NativeEndian.PutUint32(data, unix.ETHTOOL_GDRVINFO)
		if err := c.ioctl(name, data); err != nil {
			return err
		}
		info = parseDriverInfo(data)
		return nil
	})
	return info, err
}

// parseDriverInfo takes a struct ethtool_drvinfo. What is missing at the end
// of data stays empty.
func parseDriverInfo(data []byte) DriverInfo {
	var info DriverInfo
	fields := []*string{&info.Driver, &info.Version, &info.Firmware, &info.BusInfo}
	for i, field := range fields {
		start, end := 4+i*32, 4+(i+1)*32
		if end > len(data) {
			break
		}
		*field = cString(data[start:end])
	}
	return info
}

// cString returns the text of a fixed field: up to the first NUL or the end
// of the field, with bytes that are no UTF-8 replaced.
func cString(field []byte) string {
	s, _, _ := strings.Cut(string(field), "\x00")
	return strings.ToValidUTF8(s, "\uFFFD")
}
