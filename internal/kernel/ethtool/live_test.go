package ethtool_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/kerneltest"
)

// dial returns a Client of the kernel that is there, in the test's namespace
// or in that of a file.
func dial(tb testing.TB, netns *os.File) *ethtool.Client {
	tb.Helper()
	var config ethtool.Config
	if netns != nil {
		config.NetNS = int(netns.Fd())
	}
	c, err := ethtool.Dial(&config)
	if errors.Is(err, ethtool.ErrNotSupported) {
		tb.Skipf("%v: run on a kernel that has it", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

func indexOf(tb testing.TB, name string) int {
	tb.Helper()
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		tb.Fatal(err)
	}
	return ifi.Index
}

// TestLiveHost asks about whatever netdevs the machine has, as any user.
func TestLiveHost(t *testing.T) {
	t.Parallel()
	c := dial(t, nil)
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.SettingsAll()
	if err != nil {
		t.Fatal(err)
	}
	// A link may come up between the two questions.
	static := cmpopts.IgnoreFields(ethtool.LinkSettings{}, "SpeedMegabits", "Lanes", "Duplex", "LinkDetected")
	for _, ifi := range interfaces {
		t.Run(ifi.Name, func(t *testing.T) {
			t.Parallel()
			one, err := c.Settings(ifi.Index)
			if errors.Is(err, fs.ErrNotExist) {
				t.Skip("the netdev went away: run again")
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(all[ifi.Index], one, static); diff != "" {
				t.Errorf("settings (-dump +alone):\n%s", diff)
			}
			checkStatistics(t, c, ifi.Name)
		})
	}
}

// checkStatistics compares the names of a netdev's statistics with those that
// ethtool -S shows.
func checkStatistics(t *testing.T, c *ethtool.Client, name string) {
	t.Helper()
	names, values, err := ethtool.NewStatistics(name, nil).Read(c)
	if errors.Is(err, ethtool.ErrNotSupported) || errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(values) {
		t.Errorf("%d names and %d values", len(names), len(values))
	}
	if info, err := c.DriverInfo(name); err != nil || info.Driver == "" {
		t.Errorf("driver %+v, %v", info, err)
	}
	tool, err := exec.LookPath("ethtool")
	if err != nil {
		t.Skipf("statistics are not compared with those of ethtool -S: install ethtool (%v)", err)
	}
	out, err := exec.Command(tool, "-S", name).Output()
	if err != nil {
		t.Skipf("statistics are not compared with those of ethtool -S %s: %v", name, err)
	}
	var want []string
	for line := range strings.Lines(string(out)) {
		if i := strings.LastIndex(line, ": "); i >= 0 {
			want = append(want, strings.TrimSpace(line[:i]))
		}
	}
	var got []string
	for _, name := range names {
		got = append(got, strings.TrimSpace(name)) // ethtool -S aligns them
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-ethtool +got):\n%s", diff)
	}
}

// TestLiveVeth asks about a veth, whose driver answers little.
func TestLiveVeth(t *testing.T) {
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "va", "vb")
		index := indexOf(t, "va")
		c := dial(t, nil)

		settings, err := c.Settings(index)
		want := ethtool.LinkSettings{SpeedMegabits: 10000, Duplex: "full", Port: "twisted-pair", LinkDetected: new(false)}
		if diff := cmp.Diff(want, settings); diff != "" || err != nil {
			t.Errorf("settings: %v (-want +got):\n%s", err, diff)
		}
		all, err := c.SettingsAll()
		if diff := cmp.Diff(want, all[index]); diff != "" || len(all) != 3 || err != nil {
			t.Errorf("settings of %d netdevs, want lo and two veth: %v (-want +got):\n%s", len(all), err, diff)
		}
		if info, err := c.DriverInfo("va"); info.Driver != "veth" || err != nil {
			t.Errorf("driver %+v, %v, want veth", info, err)
		}
		checkStatistics(t, c, "va")
	})
}

func TestLiveErrors(t *testing.T) {
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "va", "vb")
		index := indexOf(t, "va")
		c := dial(t, nil)
		for _, tt := range []struct {
			name string
			call func() error
			want error
		}{
			{"pause", func() error { _, err := c.Pause(index); return err }, ethtool.ErrNotSupported},
			{"pause statistics", func() error { _, err := c.PauseStats(index); return err }, ethtool.ErrNotSupported},
			{"FEC", func() error { _, err := c.FEC(index); return err }, ethtool.ErrNotSupported},
			{"FEC statistics", func() error { _, err := c.FECStats(index); return err }, ethtool.ErrNotSupported},
			{"names of lo", func() error { _, err := c.StatNames("lo"); return err }, ethtool.ErrNotSupported},
			{"too few values", func() error { return c.Stats("va", make([]uint64, 1)) }, ethtool.ErrStatsChanged},
			{"no such index", func() error { _, err := c.Settings(1 << 20); return err }, fs.ErrNotExist},
			{"no such name", func() error { _, err := c.DriverInfo("none"); return err }, fs.ErrNotExist},
			{"no name", func() error { return c.Stats("", nil) }, fs.ErrNotExist},
		} {
			if err := tt.call(); !errors.Is(err, tt.want) {
				t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
			}
		}
	})
}

// TestLiveNamespace asks about a netdev in a namespace that no thread is in.
func TestLiveNamespace(t *testing.T) {
	kerneltest.NetNS(t, func() {
		other := kerneltest.NewNetNS(t)
		kerneltest.AddVeth(t, "va", "vb")
		index := indexOf(t, "vb")
		kerneltest.MoveLink(t, "vb", other)
		c := dial(t, other)

		all, err := c.SettingsAll()
		if len(all) != 2 || all[index].Duplex != "full" || err != nil {
			t.Errorf("settings %v, %v, want those of lo and vb", all, err)
		}
		if info, err := c.DriverInfo("vb"); info.Driver != "veth" || err != nil {
			t.Errorf("driver %+v, %v, want veth", info, err)
		}
		if _, err := c.StatNames("vb"); err != nil {
			t.Error(err)
		}
		if _, err := c.DriverInfo("va"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("netdev of another namespace: %v, want fs.ErrNotExist", err)
		}
	})
}

// TestLiveArenaGuard has the kernel write more than there is room for.
func TestLiveArenaGuard(t *testing.T) {
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "va", "vb")
		c := dial(t, nil)
		names, err := c.StatNames("va")
		if err != nil {
			t.Fatal(err)
		}
		c.ShrinkArena(32)
		_, namesErr := c.StatNames("va")
		for _, err := range []error{namesErr, c.Stats("va", make([]uint64, len(names)))} {
			if !errors.Is(err, unix.EFAULT) || !strings.Contains(err.Error(), "more than 32 bytes") {
				t.Errorf("error %v, want one of an answer of more than 32 bytes", err)
			}
		}
	})
}

// TestLiveStatsChange has a driver get and lose a queue between reads.
func TestLiveStatsChange(t *testing.T) {
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "va", "vb")
		index := indexOf(t, "va")
		c, s := dial(t, nil), ethtool.NewStatistics("va", nil)
		drops := []string{"rx_queue_0_drops", "rx_queue_1_drops"}
		for _, queues := range []uint32{1, 2, 1} {
			setRxQueues(t, index, queues)
			names, values, err := s.Read(c)
			if err != nil {
				t.Fatal(err)
			}
			if len(names) != len(values) || values[0] != uint64(indexOf(t, "vb")) {
				t.Errorf("values %v of %v, want first the index of vb", values, names)
			}
			want := drops[:queues]
			got := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(drops, name) })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("names with %d queues (-want +got):\n%s", queues, diff)
			}
		}
	})
}

// setRxQueues does what ethtool -L rx does.
func setRxQueues(t *testing.T, index int, queues uint32) {
	t.Helper()
	conn, err := genetlink.Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	family, err := conn.GetFamily(unix.ETHTOOL_GENL_NAME)
	if err != nil {
		t.Fatal(err)
	}
	ae := netlink.NewAttributeEncoder()
	ae.Nested(unix.ETHTOOL_A_CHANNELS_HEADER, func(ae *netlink.AttributeEncoder) error {
		ae.Uint32(unix.ETHTOOL_A_HEADER_DEV_INDEX, uint32(index))
		return nil
	})
	ae.Uint32(unix.ETHTOOL_A_CHANNELS_RX_COUNT, queues)
	data, err := ae.Encode()
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Execute(genetlink.Message{
		Header: genetlink.Header{Command: unix.ETHTOOL_MSG_CHANNELS_SET, Version: unix.ETHTOOL_GENL_VERSION},
		Data:   data,
	}, family.ID, netlink.Request|netlink.Acknowledge)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		t.Skipf("a veth with %d queues: %v: run on Linux 5.15 or newer with as many CPUs", queues, err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestStandardStatsLive asks a netdev that has none, after which another
// question is still answered.
func TestStandardStatsLive(t *testing.T) {
	t.Parallel()
	c := dial(t, nil)
	if stats, err := c.StandardStats(1); !errors.Is(err, ethtool.ErrNotSupported) {
		t.Errorf("statistics %v of lo, error %v, want %v", stats, err, ethtool.ErrNotSupported)
	}
	if _, err := c.Settings(1); err != nil {
		t.Error(err)
	}
}
