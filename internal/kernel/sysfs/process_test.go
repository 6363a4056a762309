package sysfs_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/sysfs"
)

const processTree = `
-- proc/30/cgroup --
0::/kubepods.slice/kubepods-besteffort.slice/cri-containerd-4f.scope
-- proc/30/status --
Name:	python) S 1 (
Tgid:	29
Ngid:	0
-- proc/30/stat --
30 (python) S 1 () S 1 30 30 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 8642 9 10 11
-- proc/31/cgroup --
12:cpu,cpuacct:/kubepods/pod1/a:b
1:name=systemd:/
0::/../../init.scope
-- proc/31/status --
Name:	cat
-- proc/31/stat --
31 (cat) S 1
-- proc/32/cgroup --
-- proc/33/cgroup --
0::/
nonsense
-- proc/33/status --
Tgid:	zero
-- proc/33/stat --
33 (x) S 1 30 30 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 -1
`

func TestCgroups(t *testing.T) {
	t.Parallel()
	fs := kerneltest.TreeString(t, processTree)
	tests := []struct {
		pid  int
		want []sysfs.Cgroup
		err  string
		is   error
	}{
		{pid: 30, want: []sysfs.Cgroup{{Path: "/kubepods.slice/kubepods-besteffort.slice/cri-containerd-4f.scope"}}},
		{pid: 31, want: []sysfs.Cgroup{
			{Hierarchy: 12, Controllers: []string{"cpu", "cpuacct"}, Path: "/kubepods/pod1/a:b"},
			{Hierarchy: 1, Controllers: []string{"name=systemd"}, Path: "/"},
			{Path: "/../../init.scope"},
		}},
		{pid: 32},
		{pid: 33, err: `/proc/33/cgroup: "nonsense", want a place`},
		{pid: 34, err: "no such file", is: os.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.pid), func(t *testing.T) {
			t.Parallel()
			got, err := fs.Cgroups(tt.pid)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkProcessError(t, err, tt.err, tt.is)
		})
	}
}

func TestThreadGroupAndStartTime(t *testing.T) {
	t.Parallel()
	fs := kerneltest.TreeString(t, processTree)
	tests := []struct {
		pid      int
		group    int
		groupErr string
		start    uint64
		startErr string
		is       error
	}{
		{pid: 30, group: 29, start: 8642},
		{pid: 31, groupErr: "/proc/31/status: no line Tgid", startErr: "/proc/31/stat: 2 fields after the command, want at least 20"},
		{pid: 33, groupErr: `"zero", want the number of a process`, startErr: `"-1", want a start time`},
		{pid: 34, groupErr: "34/status", startErr: "34/stat", is: os.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.pid), func(t *testing.T) {
			t.Parallel()
			group, err := fs.ThreadGroup(tt.pid)
			if group != tt.group {
				t.Errorf("process %d, want %d", group, tt.group)
			}
			checkProcessError(t, err, tt.groupErr, tt.is)
			start, err := fs.StartTime(tt.pid)
			if start != tt.start {
				t.Errorf("started at %d, want %d", start, tt.start)
			}
			checkProcessError(t, err, tt.startErr, tt.is)
		})
	}
}

// TestProcessLive reads this process.
func TestProcessLive(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		skip(t, fmt.Sprintf("needs proc: %v", err))
	}
	fs := sysfs.New("/")
	if group, err := fs.ThreadGroup(os.Getpid()); err != nil || group != os.Getpid() {
		t.Errorf("process %d, error %v, want %d", group, err, os.Getpid())
	}
	first, err := fs.StartTime(1)
	if err != nil {
		t.Fatal(err)
	}
	own, err := fs.StartTime(os.Getpid())
	if err != nil || own < first {
		t.Errorf("started at %d, error %v, want not before process 1, at %d", own, err, first)
	}
	if _, err := fs.Cgroups(os.Getpid()); err != nil {
		t.Error(err)
	}
}

func checkProcessError(t *testing.T, err error, want string, is error) {
	t.Helper()
	if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if is != nil && !errors.Is(err, is) {
		t.Errorf("error %v, want %v", err, is)
	}
}

// FuzzParseCgroups: error, or places that read the same when written.
func FuzzParseCgroups(f *testing.F) {
	f.Add("0::/init.scope\n")
	f.Add("12:cpu,cpuacct:/a:b\n1:name=systemd:/\n")
	f.Add("0:/\n")
	f.Fuzz(func(t *testing.T, s string) {
		groups, err := sysfs.ParseCgroups(s)
		if err != nil {
			if groups != nil {
				t.Errorf("%v beside error %v", groups, err)
			}
			return
		}
		var text strings.Builder
		for _, g := range groups {
			fmt.Fprintf(&text, "%d:%s:%s\n", g.Hierarchy, strings.Join(g.Controllers, ","), g.Path)
		}
		again, err := sysfs.ParseCgroups(text.String())
		if diff := cmp.Diff(groups, again); err != nil || diff != "" {
			t.Errorf("after writing (-want +got):\n%s\nerror %v", diff, err)
		}
	})
}

// FuzzParseStartTime: the command does not matter, whatever it is.
func FuzzParseStartTime(f *testing.F) {
	f.Add("cat", uint64(8642))
	f.Add(") S 1 (x", uint64(0))
	f.Fuzz(func(t *testing.T, command string, start uint64) {
		got, err := sysfs.ParseStartTime(fmt.Sprintf("30 (%s) S 1 30 30 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %d 9 10 11\n", command, start))
		if err != nil || got != start {
			t.Errorf("%d, error %v, want %d", got, err, start)
		}
	})
}

// FuzzParseTgid: error, or the number of a process.
func FuzzParseTgid(f *testing.F) {
	f.Add("Name:\tcat\nTgid:\t29\n")
	f.Add("Tgid:\t0\n")
	f.Fuzz(func(t *testing.T, s string) {
		tgid, err := sysfs.ParseTgid(s)
		if (err != nil) != (tgid == 0) || tgid < 0 {
			t.Errorf("%q: %d, error %v", s, tgid, err)
		}
		if again, err := sysfs.ParseTgid(fmt.Sprintf("Tgid:\t%d\n", tgid)); tgid != 0 && (err != nil || again != tgid) {
			t.Errorf("%q: %d, then %d, error %v", s, tgid, again, err)
		}
	})
}
