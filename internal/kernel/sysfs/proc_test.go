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

func TestProcesses(t *testing.T) {
	t.Parallel()
	fs := kerneltest.Tree(t, "testdata/system.txtar")
	tests := []struct {
		name     string
		commands []string
		want     []sysfs.Process
	}{
		{"all", nil, []sysfs.Process{{1, "systemd"}, {21, "containerd"}, {100, "nvidia-fabricma"}, {101, "kubelet"}}},
		{"some", []string{"kubelet", "crio", "systemd"}, []sysfs.Process{{1, "systemd"}, {101, "kubelet"}}},
		{"longer than the kernel keeps", []string{"nvidia-fabricmanager"}, []sysfs.Process{{100, "nvidia-fabricma"}}},
		{"none", []string{"crio"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := fs.Processes(tt.commands...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("processes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestProcessesLive finds this process among those that run, some of which go
// while they are read.
func TestProcessesLive(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/comm"); err != nil {
		skip(t, fmt.Sprintf("needs proc: %v", err))
	}
	got, err := sysfs.New("").Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range got {
		if p.PID == os.Getpid() {
			return
		}
	}
	t.Errorf("no process %d among %d", os.Getpid(), len(got))
}

func TestMemlockLimit(t *testing.T) {
	t.Parallel()
	fs := kerneltest.Tree(t, "testdata/system.txtar")
	got, err := fs.MemlockLimit(21)
	if err != nil {
		t.Fatal(err)
	}
	if want := (sysfs.Limit{Soft: 8388608, Hard: sysfs.Infinity}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, err := fs.MemlockLimit(100); err == nil || !strings.Contains(err.Error(), "100/limits: no line") {
		t.Errorf("without the line: error %v", err)
	}
	if _, err := fs.MemlockLimit(99); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no process: error %v, want os.ErrNotExist", err)
	}
}

func TestSysctl(t *testing.T) {
	t.Parallel()
	fs := kerneltest.Tree(t, "testdata/system.txtar")
	tests := []struct {
		name    string
		want    string
		wantErr error
	}{
		{"net/ipv4/conf/eth0.100/rp_filter", "2", nil},
		{"net/ipv4/ip_local_port_range", "32768\t60999", nil},
		{"net/ipv4/missing", "", os.ErrNotExist},
		{"../cmdline", "", os.ErrInvalid},
		{"/etc/passwd", "", os.ErrInvalid},
		{"", "", os.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := fs.Sysctl(tt.name)
			if got != tt.want || !errors.Is(err, tt.wantErr) {
				t.Errorf("%q, %v; want %q, %v", got, err, tt.want, tt.wantErr)
			}
		})
	}
}

func TestKernel(t *testing.T) {
	t.Parallel()
	fs := kerneltest.Tree(t, "testdata/system.txtar")
	release, err := fs.KernelRelease()
	if err != nil || release != "6.8.0-45-generic" {
		t.Errorf("release %q, %v", release, err)
	}
	params, err := fs.KernelCommandLine()
	if err != nil {
		t.Fatal(err)
	}
	want := sysfs.Params{
		{"BOOT_IMAGE", "/vmlinuz"},
		{"root", "UUID=1-2"},
		{"ro", ""},
		{"quiet", ""},
		{"iommu", "pt"},
		{"intel_iommu", "on"},
		{"iommu", "off"},
		{"ib-core.netns_mode", "0"},
		{"dyndbg", "file a.c +p"},
	}
	if diff := cmp.Diff(want, params); diff != "" {
		t.Errorf("command line (-want +got):\n%s", diff)
	}
}

func TestKernelMissing(t *testing.T) {
	t.Parallel()
	fs := kerneltest.TreeString(t, "")
	if _, err := fs.KernelCommandLine(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("command line: error %v, want os.ErrNotExist", err)
	}
	if _, err := fs.Processes(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("processes: error %v, want os.ErrNotExist", err)
	}
}

func TestParseMemlock(t *testing.T) {
	t.Parallel()
	none := sysfs.Limit{}
	checkParse(t, sysfs.ParseMemlock, []parseCase[sysfs.Limit]{
		{"Max locked memory         65536                65536                bytes     \n", sysfs.Limit{Soft: 65536, Hard: 65536}, true},
		{"Max locked memory         unlimited            0                    bytes", sysfs.Limit{Soft: sysfs.Infinity}, true},
		{"Max cpu time 1 1 s\nMax locked memory 0 1 bytes\nMax processes 2 2", sysfs.Limit{Hard: 1}, true},
		{"", none, false},
		{"Max locked memory ", none, false},
		{"Max locked memory  1", none, false},
		{"Max locked memory  lots  1", none, false},
		{"Max locked memory  1  -1", none, false},
	})
}

// FuzzParseMemlock: a limit or an error, and a limit reads the same when
// written.
func FuzzParseMemlock(f *testing.F) {
	f.Add("Max locked memory         8388608              unlimited            bytes     \n")
	f.Add("Max locked memory \n")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := sysfs.ParseMemlock(s)
		if err != nil && got != (sysfs.Limit{}) {
			t.Errorf("%+v beside error %v", got, err)
		}
		text := fmt.Sprintf("Max locked memory %s %s bytes\n", formatLimit(got.Soft), formatLimit(got.Hard))
		if again, err := sysfs.ParseMemlock(text); err != nil || again != got {
			t.Errorf("%+v, written and read again: %+v, %v", got, again, err)
		}
	})
}

func formatLimit(n uint64) string {
	if n == sysfs.Infinity {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}
