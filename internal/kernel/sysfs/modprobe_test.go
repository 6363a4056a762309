package sysfs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/sysfs"
)

func TestModuleOptions(t *testing.T) {
	t.Parallel()
	fs := kerneltest.Tree(t, "testdata/system.txtar")
	// Archives hold no absolute links, but this is how a file is hidden.
	hide(t, fs, "/etc/modprobe.d/mask.conf")
	if err := file("options mask x=1\n")(fs.Path("/usr/lib/modprobe.d/mask.conf")); err != nil {
		t.Fatal(err)
	}
	got, err := fs.ModuleOptions()
	if err != nil {
		t.Fatal(err)
	}
	want := []sysfs.ModuleOption{
		{File: "/usr/lib/modprobe.d/aa.conf", Module: "aa", Params: map[string]string{"name": "two words", "flag": ""}},
		{File: "/usr/lib/modprobe.d/aa.conf", Module: "aa", Params: map[string]string{}},
		{File: "/etc/modprobe.d/ib_core.conf", Module: "ib_core", Params: map[string]string{"netns_mode": "0"}},
		{File: "/run/modprobe.d/mlx.conf", Module: "mlx5_core", Params: map[string]string{"prof_sel": "2", "debug_mask": "0x1"}},
		{File: "/etc/modprobe.d/zz.conf", Module: "elsewhere", Params: map[string]string{"a": ""}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}

func hide(t *testing.T, fs sysfs.FS, name string) {
	t.Helper()
	if err := os.Symlink("/dev/null", fs.Path(name)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(fs.Path("/dev"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := file("options devnull is=read\n")(fs.Path("/dev/null")); err != nil {
		t.Fatal(err)
	}
}

func TestModuleOptionsNone(t *testing.T) {
	t.Parallel()
	got, err := kerneltest.TreeString(t, "").ModuleOptions()
	if err != nil || len(got) != 0 {
		t.Errorf("%v, %v; want none", got, err)
	}
}

// TestModuleOptionsHostile: one bad file does not hide the others.
func TestModuleOptionsHostile(t *testing.T) {
	t.Parallel()
	fs := kerneltest.TreeString(t, "-- etc/modprobe.d/z.conf --\noptions z a=1\n-- run/modprobe.d --\n")
	if err := mkfifo(fs.Path("/etc/modprobe.d/a.conf")); err != nil {
		t.Fatal(err)
	}
	if err := file(strings.Repeat("options big x=1\n", 100_000))(fs.Path("/etc/modprobe.d/b.conf")); err != nil {
		t.Fatal(err)
	}
	got, err := fs.ModuleOptions()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"a.conf: invalid argument: p", "b.conf: more than 1048576 bytes", "run/modprobe.d"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	want := []sysfs.ModuleOption{{File: "/etc/modprobe.d/z.conf", Module: "z", Params: map[string]string{"a": "1"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}

func TestLogicalLines(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   string
		want []string
	}{
		{"nothing", "", nil},
		{"lines", "a\n\nb", []string{"a", "b"}},
		{"comment", "# a\nb # c\n #d", []string{"b # c", " #d"}},
		{"continued", "a \\\n b\nc", []string{"a  b", "c"}},
		{"continued comment", "# a \\\nb\nc", []string{"c"}},
		{"continued to the end", "a\\\n", []string{"a"}},
		{"backslash at the end", "a\\", []string{"a"}},
		{"other backslash", `a\"b\\c`, []string{`a"b\c`}},
		{"escaped backslash before the end of the line", "a\\\\\nb", []string{`a\`, "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, sysfs.LogicalLines(tt.in)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzParseModprobe: options name a module and parameters, and plain ones read
// the same when written.
func FuzzParseModprobe(f *testing.F) {
	f.Add("options ib-core netns_mode=0 \\\n x # y\n#options a b\nblacklist c\n")
	f.Add("options a \"b c\"=d\n")
	f.Add("options\n# a\n options b \\\n c d\n")
	f.Fuzz(func(t *testing.T, text string) {
		options := sysfs.ParseModprobe(text)
		var again strings.Builder
		for _, o := range options {
			if o.Module == "" || o.File != "" || strings.ContainsAny(o.Module, "- \t\n") {
				t.Fatalf("module %q in file %q", o.Module, o.File)
			}
			again.WriteString("options " + o.Module)
			for name, value := range o.Params {
				if strings.Contains(name, "-") {
					t.Errorf("parameter %q", name)
				}
				again.WriteString(" " + name + "=" + value)
			}
			again.WriteString("\n")
		}
		if strings.ContainsAny(text, `"\=`) {
			return
		}
		if diff := cmp.Diff(options, sysfs.ParseModprobe(again.String())); diff != "" {
			t.Errorf("written and read again (-want +got):\n%s", diff)
		}
	})
}
