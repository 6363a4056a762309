package kerneltest

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestNetNSIsANewNamespace(t *testing.T) {
	t.Parallel()
	NetNS(t, func() {
		links, err := net.Interfaces()
		if err != nil {
			t.Fatal(err)
		}
		if len(links) != 1 || links[0].Name != "lo" || links[0].Flags&net.FlagUp == 0 {
			t.Errorf("links %v, want lo only, up", links)
		}
		if os.Geteuid() != 0 {
			t.Errorf("user %d, want 0", os.Geteuid())
		}
	})
}

func TestNetNSInSubtest(t *testing.T) {
	t.Parallel()
	t.Run("with (odd) characters+", func(t *testing.T) {
		t.Parallel()
		NetNS(t, func() {
			if !strings.HasSuffix(t.Name(), "/with_(odd)_characters+") {
				t.Errorf("runs as %q", t.Name())
			}
		})
	})
}

func TestNetNSMountsStayInside(t *testing.T) {
	dir := t.TempDir()
	NetNS(t, func() {
		if err := unix.Mount("inside", dir, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "inside"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		// The directory of the child is removed with the test.
		if err := unix.Unmount(dir, 0); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := os.Stat(filepath.Join(dir, "inside")); err == nil {
		t.Error("a file in a mount of the child is there outside")
	}
}

// TestNetNSVerdict runs tests that end in every way in children of their own
// and looks at what the parent is told.
func TestNetNSVerdict(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		fn     func(t *testing.T)
		report string
		output string
	}{
		{"pass", func(t *testing.T) { t.Helper(); t.Log("all is well") }, reportPassed, "all is well"},
		{"fail", func(t *testing.T) { t.Helper(); t.Error("so it is not") }, reportFailed, "so it is not"},
		{"fail now", func(t *testing.T) { t.Helper(); t.Fatal("not at all") }, reportFailed, "not at all"},
		{"skip", func(t *testing.T) { t.Helper(); t.Skip("no need") }, reportSkipped, "no need"},
		{"panic", func(t *testing.T) { t.Helper(); panic("worse") }, "", "panic: worse"},
		{"fail in cleanup", func(t *testing.T) {
			t.Helper()
			t.Cleanup(func() { t.Error("too late") })
		}, reportFailed, "too late"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if os.Getenv(netnsEnv) == t.Name() {
				inChild(t, func() { tt.fn(t) })
				return
			}
			report, output, err := runChild(t)
			if isNotPermitted(err) || strings.HasPrefix(report, reportDenied) {
				unavailable(t, report)
			}
			if err != nil {
				t.Fatal(err)
			}
			if report != tt.report {
				t.Errorf("report %q, want %q", report, tt.report)
			}
			if !strings.Contains(output, tt.output) {
				t.Errorf("output does not have %q:\n%s", tt.output, output)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	NetNS(t, func() {
		AddVeth(t, "v0", "v1")
		AddMacvlan(t, "m0", "v0")
		AddBridge(t, "br0")
		SetMaster(t, "v1", "br0")
		SetMaster(t, "v1", "")
		SetUp(t, "v0")
		SetUp(t, "v1")
		AddAddress(t, "v0", netip.MustParsePrefix("192.0.2.1/24"))
		AddAddress(t, "v0", netip.MustParsePrefix("2001:db8::1/64"))

		v0 := awaitRunning(t, "v0")
		addrs, err := v0.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"192.0.2.1/24", "2001:db8::1/64"} {
			if !slices.ContainsFunc(addrs, func(a net.Addr) bool { return a.String() == want }) {
				t.Errorf("v0 has addresses %v, want %s among them", addrs, want)
			}
		}

		MoveLink(t, "v1", NewNetNS(t))
		DeleteLink(t, "br0")
		if got, want := linkNames(t), []string{"lo", "m0", "v0"}; !slices.Equal(got, want) {
			t.Errorf("links %v, want %v", got, want)
		}
	})
}

// awaitRunning waits for a link to run: its carrier is there at once, but a worker of the kernel tells the flag
// (net/core/link_watch.c), up to a second after it told another.
func awaitRunning(t *testing.T, name string) *net.Interface {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		link, err := net.InterfaceByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if link.Flags&net.FlagRunning != 0 {
			return link
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s has flags %v, want it running", name, link.Flags)
		}
	}
}

func TestNewNetNS(t *testing.T) {
	t.Parallel()
	NetNS(t, func() {
		var here, there unix.Stat_t
		ns := NewNetNS(t)
		if err := unix.Fstat(int(ns.Fd()), &there); err != nil {
			t.Fatal(err)
		}
		if err := unix.Stat("/proc/thread-self/ns/net", &here); err != nil {
			t.Fatal(err)
		}
		if here.Ino == there.Ino {
			t.Errorf("namespace %d is the one the test runs in", there.Ino)
		}
	})
}

func linkNames(t *testing.T) []string {
	t.Helper()
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range links {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	return names
}
