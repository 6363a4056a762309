package ethtool

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// linkModes encodes the attributes of a LINKMODES_GET answer.
func linkModes(autoneg uint8, supported []byte, speed uint32, duplex uint8, lanes uint32) []byte {
	return slices.Concat(
		u8(2, autoneg),
		attribute(netlink.Nested|3, u32(2, uint32(8*len(supported))), attribute(4, make([]byte, len(supported))), attribute(5, supported)),
		u32(5, speed), u8(6, duplex), u32(9, lanes),
	)
}

// connectX7 is a 400 Gb/s port as mlx5 describes it.
func connectX7() map[command]answer {
	return map[command]answer{
		linkModesGet: {attrs: linkModes(1, words(6, 13, 14, 36, 62, 85, 86, 89), 400000, 1, 4)},
		linkInfoGet:  {attrs: slices.Concat(u8(2, 5), u8(3, 0), u8(6, 0))},
		linkStateGet: {attrs: slices.Concat(u8(2, 1), u32(3, 100))},
	}
}

func connectX7Settings() LinkSettings {
	return LinkSettings{
		SpeedMegabits: 400000, Lanes: 4, Duplex: "full", Autoneg: true,
		MaxSpeedMegabits: 400000, Port: "direct-attach", LinkDetected: new(true),
	}
}

// netdevs turns the answers of each netdev into those of a fakeKernel.
func netdevs(devs map[int]map[command]answer) map[command]map[int]answer {
	answers := make(map[command]map[int]answer)
	for index, dev := range devs {
		dev := maps.Clone(dev)
		dev[featuresGet] = answer{}
		for cmd, a := range dev {
			if answers[cmd] == nil {
				answers[cmd] = make(map[int]answer)
			}
			answers[cmd][index] = a
		}
	}
	return answers
}

func TestSettings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		dev    map[command]answer
		want   LinkSettings
		failed string // the netdev that the error names
		is     error
	}{
		{name: "all known", dev: connectX7(), want: connectX7Settings()},
		{
			name: "link down",
			dev: map[command]answer{
				linkModesGet: {attrs: linkModes(0, words(85), 0xffffffff, 0xff, 0)},
				linkInfoGet:  {attrs: u8(2, 0xff)},
				linkStateGet: {attrs: u8(2, 0)},
			},
			want: LinkSettings{MaxSpeedMegabits: 400000, Port: "other", LinkDetected: new(false)},
		},
		{
			name: "link state only",
			dev: map[command]answer{
				linkModesGet: {errno: unix.EOPNOTSUPP},
				linkInfoGet:  {errno: unix.EOPNOTSUPP},
				linkStateGet: {attrs: u8(2, 1)},
			},
			want: LinkSettings{LinkDetected: new(true)},
		},
		{
			name: "newer than this package",
			dev: map[command]answer{
				linkModesGet: {attrs: append(linkModes(1, words(86, 130, 900), 3200000, 2, 8), u32(99, 1)...)},
				linkInfoGet:  {attrs: slices.Concat(u8(2, 0x42), attribute(98, []byte("what")))},
				linkStateGet: {attrs: u8(97, 1)},
			},
			want: LinkSettings{SpeedMegabits: 3200000, Lanes: 8, Duplex: "2", Autoneg: true, MaxSpeedMegabits: 400000, Port: "66"},
		},
		{
			name: "one of three fails",
			dev: map[command]answer{
				linkModesGet: connectX7()[linkModesGet],
				linkInfoGet:  {errno: unix.EIO},
				linkStateGet: {attrs: u8(2, 1)},
			},
			want: LinkSettings{
				SpeedMegabits: 400000, Lanes: 4, Duplex: "full", Autoneg: true,
				MaxSpeedMegabits: 400000, LinkDetected: new(true),
			},
			failed: "ifindex 3", is: unix.EIO,
		},
		{
			name: "one of three is malformed",
			dev: map[command]answer{
				linkModesGet: {attrs: slices.Concat(u8(2, 1), u8(5, 1))},
				linkInfoGet:  {attrs: u8(2, 3)},
				linkStateGet: {attrs: u8(2, 1)},
			},
			want:   LinkSettings{Port: "fibre", LinkDetected: new(true)},
			failed: "ifindex 3",
		},
		{
			name: "goes meanwhile",
			dev: map[command]answer{
				linkModesGet: connectX7()[linkModesGet],
				linkInfoGet:  {errno: unix.ENODEV},
			},
			failed: "ifindex 3", is: fs.ErrNotExist,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := &fakeKernel{tb: t, answers: netdevs(map[int]map[command]answer{3: tt.dev})}
			got, err := k.client().Settings(3)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkFailed(t, err, tt.failed, tt.is)
		})
	}
}

func TestSettingsAll(t *testing.T) {
	t.Parallel()
	unsupported := answer{errno: unix.EOPNOTSUPP}
	lo := map[command]answer{linkModesGet: unsupported, linkInfoGet: unsupported, linkStateGet: {attrs: u8(2, 1)}}
	loSettings := LinkSettings{LinkDetected: new(true)}
	dumps := []string{"LINKMODES_GET all", "LINKINFO_GET all", "LINKSTATE_GET all"}
	each := func(cmd command) []string {
		return []string{
			cmd.String() + " all", "FEATURES_GET all",
			cmd.String() + " 1", cmd.String() + " 3", cmd.String() + " 4", cmd.String() + " 5",
		}
	}
	failing := func(errno unix.Errno) map[command]answer {
		dev := connectX7()
		dev[linkInfoGet] = answer{errno: errno}
		return dev
	}
	noPort := connectX7Settings()
	noPort.Port = ""
	malformed := connectX7()
	malformed[linkInfoGet] = answer{attrs: u32(2, 5)}
	tests := []struct {
		name     string
		fourth   map[command]answer
		want     LinkSettings // of the fourth
		requests []string
		failed   string // the netdev that the error names
		is       error
	}{
		{name: "all answer", fourth: connectX7(), want: connectX7Settings(), requests: dumps},
		{name: "one does not support", fourth: failing(unix.EOPNOTSUPP), want: noPort, requests: dumps},
		{
			name: "one fails", fourth: failing(unix.EIO), want: noPort, failed: "ifindex 4", is: unix.EIO,
			requests: slices.Concat(dumps[:1], each(linkInfoGet), dumps[2:]),
		},
		{
			name: "one is in a reset", fourth: failing(unix.ENODEV), want: noPort,
			requests: slices.Concat(dumps[:1], each(linkInfoGet), dumps[2:]),
		},
		{name: "one is malformed", fourth: malformed, want: noPort, requests: dumps, failed: "ifindex 4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := &fakeKernel{tb: t, answers: netdevs(map[int]map[command]answer{1: lo, 3: connectX7(), 4: tt.fourth, 5: connectX7()})}
			got, err := k.client().SettingsAll()
			want := map[int]LinkSettings{1: loSettings, 3: connectX7Settings(), 4: tt.want, 5: connectX7Settings()}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.requests, k.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			checkFailed(t, err, tt.failed, tt.is)
		})
	}
}

// checkFailed checks for an Error of a netdev, or for none where that is empty.
func checkFailed(t *testing.T, err error, netdev string, is error) {
	t.Helper()
	if netdev == "" {
		if err != nil {
			t.Errorf("error %v, want none", err)
		}
		return
	}
	if e, ok := errors.AsType[*Error](err); !ok || e.Netdev != netdev {
		t.Errorf("error %v, want one that names %s", err, netdev)
	}
	if is != nil && !errors.Is(err, is) {
		t.Errorf("error %v, want %v", err, is)
	}
}

// A command that no netdev or the kernel does not know takes nothing away.
func TestSettingsAllUnsupported(t *testing.T) {
	t.Parallel()
	k := &fakeKernel{tb: t, answers: map[command]map[int]answer{linkStateGet: {3: {attrs: u8(2, 1)}}}}
	got, err := k.client().SettingsAll()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int]LinkSettings{3: {LinkDetected: new(true)}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Messages of a real kernel, Linux 6.18 on a little-endian machine.
func TestParseSettings(t *testing.T) {
	t.Parallel()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the captured messages are little-endian: run on a little-endian machine")
	}
	tests := []struct {
		name  string
		query linkQuery
		hex   string
		want  LinkSettings
	}{
		{
			name: "veth modes", query: linkQueries()[0], want: LinkSettings{SpeedMegabits: 10000, Duplex: "full"},
			hex: "14000180080001000300000007000200766100000500020000000000340003800800020079000000140004000000000000000000" +
				"000000000000000014000500000000000000000000000000000000000800050010270000050006000100000005000a0000000000",
		},
		{
			name: "virtio modes, speed unknown", query: linkQueries()[0],
			hex: "18000180080001000400000009000200657468300000000005000200000000003400038008000200790000001400040000000000" +
				"0000000000000000000000001400050000000000000000000000000000000000" +
				"08000500ffffffff05000600ff00000005000a0000000000",
		},
		{
			name: "virtio port", query: linkQueries()[1], want: LinkSettings{Port: "other"},
			hex: "18000180080001000400000009000200657468300000000005000200ff00000005000300000000000500040000000000" +
				"05000500000000000500060000000000",
		},
		{
			name: "virtio link", query: linkQueries()[2], want: LinkSettings{LinkDetected: new(true)},
			hex: "1800018008000100040000000900020065746830000000000500020001000000",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := hex.DecodeString(tt.hex)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tt.query.parse(b, LinkSettings{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the bytes, the answer of a command either is in bounds or an error.
func FuzzParseSettings(f *testing.F) {
	for which, cmd := range []command{linkModesGet, linkInfoGet, linkStateGet} {
		f.Add(uint8(which), answer{attrs: connectX7()[cmd].attrs}.message(3).Data)
	}
	f.Add(uint8(0), linkModes(1, words(900), 0x80000000, 7, 1))
	f.Add(uint8(0), []byte{4, 0, 1})
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		queries := linkQueries()
		s, err := queries[int(which)%len(queries)].parse(b, LinkSettings{})
		if err != nil {
			return
		}
		if s.SpeedMegabits < 0 || s.MaxSpeedMegabits < 0 || s.Lanes < 0 {
			t.Errorf("negative: %+v", s)
		}
		if s.MaxSpeedMegabits != 0 && !slices.Contains(linkModeMegabits[:], s.MaxSpeedMegabits) {
			t.Errorf("%d Mb/s is the speed of no link mode", s.MaxSpeedMegabits)
		}
		again, err := queries[int(which)%len(queries)].parse(b, s)
		if diff := cmp.Diff(s, again); diff != "" || err != nil {
			t.Errorf("parsed over itself: %v (-first +again):\n%s", err, diff)
		}
		headerIndex(b)
	})
}

// What is encoded as the kernel does comes back.
func FuzzSettingsRoundTrip(f *testing.F) {
	f.Add(uint8(1), uint32(400000), uint8(1), uint32(4), uint8(5), uint8(1), uint16(86))
	f.Add(uint8(0), uint32(0xffffffff), uint8(0xff), uint32(0), uint8(0xff), uint8(0), uint16(2000))
	f.Fuzz(func(t *testing.T, autoneg uint8, speed uint32, duplex uint8, lanes uint32, port, link uint8, mode uint16) {
		lanes &= 0xff
		mode &= 0xfff
		dev := map[command][]byte{
			linkModesGet: linkModes(autoneg, words(int(mode)), speed, duplex, lanes),
			linkInfoGet:  u8(2, port),
			linkStateGet: u8(2, link),
		}
		want := LinkSettings{
			SpeedMegabits: megabits(speed), Lanes: int(lanes), Duplex: duplexName(duplex), Autoneg: autoneg != 0,
			Port: portName(port), LinkDetected: new(link != 0),
		}
		if int(mode) < len(linkModeMegabits) {
			want.MaxSpeedMegabits = linkModeMegabits[mode]
		}
		var got LinkSettings
		for _, q := range linkQueries() {
			var err error
			if got, err = q.parse(dev[q.command], got); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
