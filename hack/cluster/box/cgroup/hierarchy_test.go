package cgroup

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	v1 := func(dir string, controllers ...string) Hierarchy {
		return Hierarchy{Dir: "/sys/fs/cgroup/" + dir, Controllers: controllers}
	}
	for _, test := range []struct {
		name      string
		mountinfo string
		want      []Hierarchy
	}{
		{
			"v2", `24 28 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 none rw,nsdelegate,memory_recursiveprot`,
			[]Hierarchy{{Dir: "/sys/fs/cgroup", V2: true}},
		},
		{
			"hybrid", `32 31 0:29 / /sys/fs/cgroup/unified rw - cgroup2 none rw
33 31 0:30 / /sys/fs/cgroup/systemd rw shared:9 - cgroup none rw,xattr,name=systemd
34 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup none rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/cpuset rw shared:11 - cgroup none rw,cpuset,clone_children,release_agent=/x`,
			[]Hierarchy{{Dir: "/sys/fs/cgroup/systemd", Name: "systemd"}, v1("cpu,cpuacct", "cpu", "cpuacct"), v1("cpuset", "cpuset")},
		},
		{
			"v2 with a named hierarchy", `32 31 0:29 / /sys/fs/cgroup rw - cgroup2 none rw
33 31 0:30 / /mnt/elogind rw - cgroup none rw,name=elogind`,
			[]Hierarchy{{Dir: "/sys/fs/cgroup", V2: true}},
		},
		{
			"mounted twice, in part, and elsewhere", `1 1 8:1 / /home rw - ext4 /dev/sda rw
32 31 0:29 /kubepods /run/part rw - cgroup none rw,pids
33 31 0:29 / /sys/fs/cgroup/pids rw - cgroup none rw,pids
34 31 0:29 / /mnt/a\040b rw - cgroup none rw,pids
35 31 0:30 / /mnt/a\040b/m rw - cgroup none rw,memory`,
			[]Hierarchy{v1("pids", "pids"), {Dir: "/mnt/a b/m", Controllers: []string{"memory"}}},
		},
		{"a controller to come", `33 31 0:29 / /sys/fs/cgroup/gpu rw - cgroup none rw,gpu`, []Hierarchy{v1("gpu", "gpu")}},
	} {
		got, err := parse(test.mountinfo)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.name, diff)
		}
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for mountinfo, want := range map[string]string{
		"":    "no mount of type cgroup",
		"abc": `line "abc"`,
		"33 31 0:30 / /x rw - cgroup none rw,name=only": "no mount of type cgroup",
		"33 31 0:30 / /x rw - cgroup":                   "want mount",
	} {
		if list, err := parse(mountinfo); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want an error with %q", mountinfo, list, err, want)
		}
	}
}

// FuzzParse wants what was read, mounted again as read, to be read the same.
func FuzzParse(f *testing.F) {
	f.Add("24 28 0:22 / /sys/fs/cgroup rw - cgroup2 none rw,nsdelegate")
	f.Add("33 31 0:30 / /sys/fs/cgroup/systemd rw - cgroup none rw,xattr,name=systemd\n34 31 0:31 / /cpu rw - cgroup none rw,cpu,cpuacct")
	f.Fuzz(func(t *testing.T, mountinfo string) {
		list, err := parse(mountinfo)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, h := range list {
			kind := "cgroup"
			if h.V2 {
				kind = "cgroup2"
			}
			dir := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(h.Dir)
			fmt.Fprintf(&again, "1 1 0:1 / %s rw - %s x rw,%s\n", dir, kind, h.options())
		}
		got, err := parse(again.String())
		if err != nil {
			t.Fatalf("%q: %v", again.String(), err)
		}
		if diff := cmp.Diff(list, got); diff != "" {
			t.Errorf("%q: (-first +again)\n%s", again.String(), diff)
		}
		if len(list) > 1 && slices.ContainsFunc(list, func(h Hierarchy) bool { return h.V2 }) {
			t.Errorf("v1 and v2 at once: %v", list)
		}
	})
}

func TestLabel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		h              Hierarchy
		label, options string
	}{
		{Hierarchy{Controllers: []string{"cpu", "cpuacct"}}, "cpu,cpuacct", "cpu,cpuacct"},
		{Hierarchy{Name: "systemd"}, "systemd", "none,name=systemd"},
		{Hierarchy{Controllers: []string{"net_cls"}, Name: "n"}, "net_cls", "net_cls,name=n"},
	} {
		if test.h.label() != test.label || test.h.options() != test.options {
			t.Errorf("%+v: %q, %q, want %q, %q", test.h, test.h.label(), test.h.options(), test.label, test.options)
		}
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		all, some string
		want      []string
	}{
		{"cpuset cpu io memory pids\n", "cpu pids\n", []string{"cpuset", "io", "memory"}},
		{"cpu", "", []string{"cpu"}},
		{"cpu", "cpu", nil},
		{"", "", nil},
	} {
		if diff := cmp.Diff(test.want, missing(test.all, test.some)); diff != "" {
			t.Errorf("%q without %q: (-want +got)\n%s", test.all, test.some, diff)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", ".", "/railhead-x", "railhead", "railhead-x/", "railhead-x//y", "railhead-x/../y", "../railhead-x", "system.slice"} {
		if g, err := New(path); err == nil {
			t.Errorf("%q: %v, want an error", path, g)
		}
	}
}
