package ethtool

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// drvinfo encodes a struct ethtool_drvinfo; a string of 32 bytes has no NUL.
func drvinfo(fields ...string) []byte {
	b := make([]byte, drvinfoSize)
	for i, field := range fields {
		copy(b[4+32*i:4+32*(i+1)], field)
	}
	return b
}

func TestDriverInfo(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 32)
	tests := []struct {
		name   string
		answer []byte
		want   DriverInfo
	}{
		{
			name: "mlx5", answer: drvinfo("mlx5_core", "6.8.0", "28.39.1002 (MT_0000000834)", "0000:17:00.0"),
			want: DriverInfo{Driver: "mlx5_core", Version: "6.8.0", Firmware: "28.39.1002 (MT_0000000834)", BusInfo: "0000:17:00.0"},
		},
		{name: "little known", answer: drvinfo("veth"), want: DriverInfo{Driver: "veth"}},
		{name: "not terminated", answer: drvinfo(long, "", long), want: DriverInfo{Driver: long, Firmware: long}},
		{name: "after the end", answer: drvinfo("a\x00b"), want: DriverInfo{Driver: "a"}},
		{name: "not UTF-8", answer: drvinfo("a\xffb"), want: DriverInfo{Driver: "a\uFFFDb"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := fakeIoctl(t, func(netdev string, data []byte) error {
				want := binary.NativeEndian.AppendUint32(nil, unix.ETHTOOL_GDRVINFO)
				if netdev != "eth0" || !bytes.Equal(data, append(want, make([]byte, drvinfoSize-4)...)) {
					t.Errorf("request for %s: %x", netdev, data)
				}
				copy(data, tt.answer)
				return nil
			})
			fillArena(c)
			got, err := c.DriverInfo("eth0")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDrvinfoSize(t *testing.T) {
	t.Parallel()
	if got := unsafe.Sizeof(unix.EthtoolDrvinfo{}); got != drvinfoSize {
		t.Errorf("struct ethtool_drvinfo has %d bytes, want %d", got, drvinfoSize)
	}
}

// Fields are text of their 32 bytes and no more, and come back.
func FuzzParseDriverInfo(f *testing.F) {
	f.Add(drvinfo("mlx5_core", "6.8.0", "28.39.1002", "0000:17:00.0"))
	f.Add(drvinfo("\xff", strings.Repeat("y", 32)))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		info := parseDriverInfo(data)
		fields := []string{info.Driver, info.Version, info.Firmware, info.BusInfo}
		for _, field := range fields {
			if !utf8.ValidString(field) || strings.Contains(field, "\x00") || utf8.RuneCountInString(field) > 32 {
				t.Errorf("%q of %x", field, data)
			}
		}
		if utf8.Valid(data) && parseDriverInfo(drvinfo(fields...)) != info {
			t.Errorf("%+v does not come back", info)
		}
	})
}
