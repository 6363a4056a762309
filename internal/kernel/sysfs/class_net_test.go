package sysfs_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/sysfs"
)

func TestNetdevs(t *testing.T) {
	t.Parallel()
	got, err := kerneltest.Tree(t, "testdata/roce.txtar").Netdevs()
	if err != nil {
		t.Fatal(err)
	}
	up := true
	want := []sysfs.Netdev{
		{
			Name:      "bond0",
			Index:     7,
			Type:      1,
			Address:   "0c:42:a1:65:12:34",
			OperState: "up",
			Carrier:   &up,
			MTU:       9000,
			Lower:     []string{"enp23s0f0np0", "enp24s0"},
			BondMode:  "802.3ad",
		},
		{
			Name:         "enp23s0f0np0",
			Index:        4,
			DevicePath:   "devices/pci0000:16/0000:16:01.0/0000:17:00.0",
			PhysPortName: "p0",
			PhysSwitchID: "34126500031a420c",
			Type:         1,
			Address:      "0c:42:a1:65:12:34",
			OperState:    "up",
			Carrier:      &up,
			MTU:          9000,
			SpeedMegabit: 400000,
			Master:       "bond0",
		},
		{
			Name:      "eth0.100",
			Index:     9,
			Type:      1,
			Address:   "52:54:00:12:34:56",
			OperState: "down",
			MTU:       1500,
			Lower:     []string{"eth0"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("netdevs (-want +got):\n%s", diff)
	}
}

func TestNetdevNames(t *testing.T) {
	t.Parallel()
	got, err := kerneltest.Tree(t, "testdata/roce.txtar").NetdevNames()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"bond0", "enp23s0f0np0", "eth0.100", "gone0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestNetdevBad(t *testing.T) {
	t.Parallel()
	fs := kerneltest.TreeString(t, `
-- sys/class/net/eth0/{} --
carrier: maybe
mtu: 1500
speed: fast
`)
	got, err := fs.Netdev("eth0")
	for _, want := range []string{`carrier: "maybe", want 0 or 1`, `speed: "fast", want a speed`} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if diff := cmp.Diff(sysfs.Netdev{Name: "eth0", MTU: 1500}, got); diff != "" {
		t.Errorf("netdev (-want +got):\n%s", diff)
	}
}

func TestNetdevMissing(t *testing.T) {
	t.Parallel()
	if _, err := kerneltest.TreeString(t, "").Netdev("eth0"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want os.ErrNotExist", err)
	}
}

// TestNetdevsLive reads the netdevs of the running system, where the kernel
// answers speed and carrier with EINVAL and the physical port with EOPNOTSUPP.
func TestNetdevsLive(t *testing.T) {
	t.Parallel()
	var fs sysfs.FS
	if _, err := os.Stat(fs.Sys("class/net/lo")); err != nil {
		skip(t, fmt.Sprintf("needs sysfs: %v", err))
	}
	netdevs, err := fs.Netdevs()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range netdevs {
		if n.Index == 0 || n.MTU == 0 || n.OperState == "" {
			t.Errorf("%+v, want an index, an MTU and a state", n)
		}
	}
}

func TestWithSys(t *testing.T) {
	t.Parallel()
	fs := kerneltest.TreeString(t, `
-- sys/class/net/eth0/ --
-- run/railhead/sys-17/class/net/net1/ --
-- proc/sys/net/ipv4/ip_forward --
1
`)
	other := fs.WithSys(fs.Path("/run/railhead/sys-17"))
	got, err := other.NetdevNames()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"net1"}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if v, err := other.Sysctl("net/ipv4/ip_forward"); v != "1" || err != nil {
		t.Errorf("sysctl %q, %v; want 1", v, err)
	}
}

func TestParseSpeed(t *testing.T) {
	t.Parallel()
	checkParse(t, sysfs.ParseSpeed, []parseCase[int]{
		{"400000", 400000, true},
		{"0", 0, true},
		{"-1", 0, true},
		{"4294967295", 0, true},
		{"2147483647", 0, true},
		{"", 0, false},
		{"1e5", 0, false},
	})
}

func TestBeforeNumber(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"802.3ad 4":    "802.3ad",
		"balance-rr 0": "balance-rr",
		"new mode":     "new mode",
		"802.3ad":      "802.3ad",
		"":             "",
	} {
		if got := sysfs.BeforeNumber(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzBeforeNumber: the result is the beginning of what was there, and only a
// number is cut off.
func FuzzBeforeNumber(f *testing.F) {
	f.Add("802.3ad 4")
	f.Add("x")
	f.Fuzz(func(t *testing.T, s string) {
		got := sysfs.BeforeNumber(s)
		number, ok := strings.CutPrefix(s, got)
		if !ok || strings.Trim(number, " 0123456789") != "" {
			t.Errorf("%q of %q", got, s)
		}
	})
}

// FuzzParseSpeed: never negative; what is not unknown reads the same when
// written.
func FuzzParseSpeed(f *testing.F) {
	f.Add("100000")
	f.Add("-1")
	f.Add("4294967295")
	f.Fuzz(func(t *testing.T, s string) {
		speed, err := sysfs.ParseSpeed(s)
		if speed < 0 || err != nil && speed != 0 {
			t.Errorf("%d, %v", speed, err)
		}
		if again, err := sysfs.ParseSpeed(strconv.Itoa(speed)); again != speed || err != nil {
			t.Errorf("%d, written and read again: %d, %v", speed, again, err)
		}
	})
}

// FuzzParseCarrier: a carrier or an error, never both or none.
func FuzzParseCarrier(f *testing.F) {
	f.Add("0")
	f.Add("1")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		up, err := sysfs.ParseCarrier(s)
		if (up == nil) != (err != nil) || up != nil && *up != (s == "1") {
			t.Errorf("%q: %v, %v", s, up, err)
		}
	})
}
