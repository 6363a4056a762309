package ethtool

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// standardClient is a Client whose kernel answers STATS_GET of netdev 3.
func standardClient(t *testing.T, errno unix.Errno, answers ...[]byte) *Client {
	t.Helper()
	want := slices.Concat(
		attribute(netlink.Nested|2, u32(1, 3), u32(3, unix.ETHTOOL_FLAG_COMPACT_BITSETS)),
		attribute(netlink.Nested|3, attribute(1), u32(2, 4), u32(4, 0xf)),
	)
	c, err := New(genltest.Dial(genltest.ServeFamily(testFamily, func(got genetlink.Message, header netlink.Message) ([]genetlink.Message, error) {
		if got.Header.Command != 32 || header.Header.Flags != netlink.Request || !bytes.Equal(got.Data, want) {
			t.Errorf("request %d, flags %v, % x, want 32, % x", got.Header.Command, header.Header.Flags, got.Data, want)
		}
		if errno != 0 {
			return nil, genltest.Error(int(errno))
		}
		var messages []genetlink.Message
		for _, b := range answers {
			messages = append(messages, genetlink.Message{Data: b})
		}
		if len(messages) == 0 {
			return nil, io.EOF
		}
		return messages, nil
	})), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// standardAnswer is an answer with groups.
func standardAnswer(groups ...[]byte) []byte {
	head := attribute(netlink.Nested|2, u32(1, 3), attribute(2, []byte("eth0\x00")))
	return slices.Concat(head, u32(5, 0), bytes.Join(groups, nil))
}

func group(id uint32, stats ...[]byte) []byte {
	return attribute(netlink.Nested|4, append([][]byte{u32(2, id), u32(3, 17)}, stats...)...)
}

func stat(number uint16, v uint64) []byte { return attribute(netlink.Nested|4, u64(number, v)) }

func TestStandardStats(t *testing.T) {
	t.Parallel()
	histogram := attribute(netlink.Nested|5, u32(7, 0), u32(8, 64), u64(9, 12))
	tests := []struct {
		name    string
		answers [][]byte
		errno   unix.Errno
		want    []StandardStat
		err     string
		is      error
	}{
		{
			name: "first and last of each group, padded",
			answers: [][]byte{standardAnswer(
				group(0, stat(0, 5)), group(1, attribute(1), stat(0, 1<<63), stat(21, 0)),
				group(2, stat(0, 2), stat(2, 3)), group(3, histogram, stat(0, 4), stat(3, 6)),
			)},
			want: []StandardStat{
				{"eth-phy", "SymbolErrorDuringCarrier", 5},
				{"eth-mac", "FramesTransmittedOK", 1 << 63},
				{"eth-mac", "FrameTooLongErrors", 0},
				{"eth-ctrl", "MACControlFramesTransmitted", 2},
				{"eth-ctrl", "UnsupportedOpcodesReceived", 3},
				{"rmon", "etherStatsUndersizePkts", 4},
				{"rmon", "etherStatsJabbers", 6},
			},
		},
		{
			name:    "newer than this package",
			answers: [][]byte{standardAnswer(group(0, stat(9, 1)), group(7, stat(0, 2)))},
			want:    []StandardStat{{"eth-phy", "9", 1}, {"7", "0", 2}},
		},
		{name: "none", answers: [][]byte{standardAnswer(group(0), group(1), group(2), group(3))}, err: "ethtool STATS_GET, ifindex 3: no standard statistics", is: ErrNotSupported},
		{name: "no answer", err: "no standard statistics", is: ErrNotSupported},
		{name: "narrow value", answers: [][]byte{standardAnswer(group(0, attribute(netlink.Nested|4, u32(0, 1))))}, err: "ethtool STATS_GET, ifindex 3: "},
		{name: "Linux before 5.13", errno: unix.EOPNOTSUPP, err: "not supported", is: ErrNotSupported},
		{name: "netdev is gone", errno: unix.ENODEV, err: "no such device", is: fs.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := standardClient(t, tt.errno, tt.answers...).StandardStats(3)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v, want %v", err, tt.is)
			}
		})
	}
}

// TestStandardStatNumber goes from names to numbers and back.
func TestStandardStatNumber(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, g := range standardGroups {
		for _, name := range g.stats {
			id, number, ok := StandardStatNumber(g.name, name)
			group, names := groupNames(id)
			if !ok || group != g.name || statName(names, number) != name || seen[name] {
				t.Errorf("%s %s: number %d of %d, %t, which is %s of %s", g.name, name, number, id, ok, statName(names, number), group)
			}
			seen[name] = true
		}
	}
	if len(seen) != 30 {
		t.Errorf("%d statistics, want 30", len(seen))
	}
	for _, name := range []string{"", "FramesTransmittedOK"} {
		if id, number, ok := StandardStatNumber("rmon", name); ok {
			t.Errorf("%q of rmon is %d of %d", name, number, id)
		}
	}
}

// FuzzStandardStats wants what was decoded to be the same when encoded again.
func FuzzStandardStats(f *testing.F) {
	f.Add(standardAnswer(group(0, stat(0, 5)), group(1, stat(3, 1)), group(3, stat(1, 1))))
	f.Add(standardAnswer(group(9, stat(99, 5)), group(9, stat(99, 5))))
	f.Fuzz(func(t *testing.T, b []byte) {
		stats, err := parseStandardStats(b)
		if err != nil {
			if stats != nil {
				t.Errorf("error %v and a value: %v", err, stats)
			}
			return
		}
		var groups [][]byte
		for _, s := range stats {
			id, number, ok := StandardStatNumber(s.Group, s.Name)
			if !ok {
				id, number = unnamed(t, s)
			}
			groups = append(groups, group(id, stat(number, s.Value)))
		}
		again, err := parseStandardStats(standardAnswer(groups...))
		if diff := cmp.Diff(stats, again); err != nil || diff != "" {
			t.Errorf("after encoding (-want +got):\n%s\nerror %v", diff, err)
		}
	})
}

// unnamed finds the numbers of a statistic that has no name.
func unnamed(t *testing.T, s StandardStat) (id uint32, number uint16) {
	t.Helper()
	group, err := strconv.ParseUint(s.Group, 10, 32)
	id = uint32(group)
	for i := range standardGroups {
		if standardGroups[i].name == s.Group {
			id, err = uint32(i), nil
		}
	}
	name, errName := strconv.ParseUint(s.Name, 10, 16)
	if err := errors.Join(err, errName); err != nil {
		t.Fatalf("%+v has neither a name nor a number: %v", s, err)
	}
	return id, uint16(name)
}
