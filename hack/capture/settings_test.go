package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/inventory"
	"railhead/internal/kernel/sysfs"
)

func TestContainerdLines(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   string
		want string
	}{
		{"nothing", "", ""},
		{"version only", "version = 2\nroot = \"/data\"\n", "version = 2\n"},
		{
			name: "switches",
			in:   "[plugins.'io.containerd.nri.v1.nri']\ndisable = true\nsocket_path = '/x'\n[plugins.'io.containerd.grpc.v1.cri']\nenable_cdi = false\nsandbox_image = 'x'\n",
			want: "\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  enable_cdi = false\n\n[plugins.\"io.containerd.nri.v1.nri\"]\n  disable = true\n",
		},
		{
			name: "imports and disabled plugins",
			in:   "version = 3\nimports = ['conf.d/*.toml']\ndisabled_plugins = ['io.containerd.nri.v1.nri', 'x']\n",
			want: "version = 3\nimports = [\"conf.d/*.toml\"]\ndisabled_plugins = [\"io.containerd.nri.v1.nri\"]\n",
		},
		{"switch that is none", "version = 3\n[plugins.'io.containerd.nri.v1.nri']\ndisable = 'password'\n", "version = 3\n"},
	}
	lines := func(text string) (string, error) {
		config, err := parseContainerd([]byte(text))
		return config.lines(), err
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := lines(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if again, err := lines(got); err != nil || again != got {
				t.Errorf("lines of the lines: %q, %v", again, err)
			}
		})
	}
	if got, err := lines("version = ["); err == nil {
		t.Errorf("%q, want an error", got)
	}
}

func TestCRIOLines(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "",
		"[crio]\nroot = \"/x\"\n[crio.nri]\nenable_nri = false\n": "[crio.nri]\n  enable_nri = false\n",
	} {
		if got, err := crioLines([]byte(in)); err != nil || got != want {
			t.Errorf("%q, error %v, want %q", got, err, want)
		}
	}
}

func TestFormatParam(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   sysfs.Param
		want string // empty for an error
	}{
		{"flag", sysfs.Param{Name: "quiet"}, "quiet"},
		{"value", sysfs.Param{Name: "iommu", Value: "pt"}, "iommu=pt"},
		{"value with an equals sign", sysfs.Param{Name: "a", Value: "b=c"}, "a=b=c"},
		{"value with spaces", sysfs.Param{Name: "a", Value: "b c"}, `a="b c"`},
		{"value with a quote", sysfs.Param{Name: "a", Value: `b"c`}, ""},
		{"value with a backslash", sysfs.Param{Name: "a", Value: `b\c`}, ""},
		{"name with a space", sysfs.Param{Name: "a b", Value: "c"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := formatParam(tt.in)
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestIsKept(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"ib_core.netns_mode": true, "ib-core.netns_mode": true, "mlx5_core.prof_sel": true,
		"iommu": true, "intel_iommu": true, "intel-iommu": true, "pci": true, "module_blacklist": true,
		"root": false, "ip": false, "ib_core": false, "password": false, "iommux": false, "rd.luks.key": false,
	} {
		if got := isKept(sysfs.Param{Name: name}); got != want {
			t.Errorf("%s kept: %t, want %t", name, got, want)
		}
	}
}

// TestModules wants the driver that goes with each listed driver listed too.
func TestModules(t *testing.T) {
	t.Parallel()
	for _, name := range rdmaModules {
		if d, ok := inventory.DriverOf(name); ok && !slices.Contains(rdmaModules, d.RDMA) {
			t.Errorf("%s is listed, %s is not", name, d.RDMA)
		}
		if name != moduleName(name) {
			t.Errorf("%s: the names of modules have _ for -", name)
		}
	}
}

// FuzzOsReleaseLines: what is kept are lines of the text, in order, and only
// those listed.
func FuzzOsReleaseLines(f *testing.F) {
	f.Add("ID=debian\nNAME=\"x\"\nID_LIKE=a b\n\nVERSION_ID")
	f.Add(" ID = x\n#ID=y\nID\n=\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines := slices.Collect(strings.SplitSeq(text, "\n"))
		for line := range strings.Lines(osReleaseLines(text)) {
			line = strings.TrimSuffix(line, "\n")
			at := slices.Index(lines, line)
			if at < 0 {
				t.Fatalf("%q is no line of what is left of %q", line, text)
			}
			lines = lines[at+1:]
			if key, _, _ := strings.Cut(line, "="); !slices.Contains(osRelease, strings.TrimSpace(key)) {
				t.Errorf("%q is not on the list", line)
			}
		}
	})
}

// FuzzContainerdLines: nothing of a configuration gets through but the version,
// imports, and switches.
func FuzzContainerdLines(f *testing.F) {
	f.Add("version = 3\n[plugins.'io.containerd.nri.v1.nri']\ndisable = true\n")
	f.Add("[plugins.'io.containerd.grpc.v1.cri'.registry.auth]\npassword = 'x'\n")
	f.Add("version = 3\nplugins = 1\n")
	switches := slices.Sorted(maps.Values(containerdSwitches))
	f.Fuzz(func(t *testing.T, text string) {
		config, err := parseContainerd([]byte(text))
		if err != nil {
			return
		}
		got := config.lines()
		for line := range strings.Lines(got) {
			line = strings.TrimSpace(line)
			key, value, _ := strings.Cut(line, " = ")
			plugin := strings.TrimSuffix(strings.TrimPrefix(line, `[plugins."`), `"]`)
			switch {
			case line == "", containerdSwitches[plugin] != "":
			case key == "imports" && len(config.Imports) > 0, key == "disabled_plugins" && value == `["`+nriPlugin+`"]`:
			case key == "version" && strings.Trim(value, "-0123456789") == "":
			case slices.Contains(switches, key) && (value == "true" || value == "false"):
			default:
				t.Errorf("line %q of %q", line, text)
			}
		}
	})
}
