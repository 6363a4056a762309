package archive_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/archive"
)

func TestUnpack(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		text string
		want map[string]string
	}{
		{
			name: "nothing",
			want: map[string]string{},
		},
		{
			name: "files",
			text: "a machine\n-- top --\n1\n-- a/b/c --\ntwo\nlines\n-- a/b/empty --\n",
			want: map[string]string{"top": "1\n", "a/": "", "a/b/": "", "a/b/c": "two\nlines\n", "a/b/empty": ""},
		},
		{
			name: "link before its target and link to nothing",
			text: "-- class/x -> ../devices/0000:17:00.0/x --\n-- devices/0000:17:00.0/x/y --\n-- gone -> class/z --\n",
			want: map[string]string{
				"class/": "", "class/x": "-> ../devices/0000:17:00.0/x",
				"devices/": "", "devices/0000:17:00.0/": "", "devices/0000:17:00.0/x/": "", "devices/0000:17:00.0/x/y": "",
				"gone": "-> class/z",
			},
		},
		{
			name: "empty directory",
			text: "-- a/b/ --\n-- a/b/ --\n",
			want: map[string]string{"a/": "", "a/b/": ""},
		},
		{
			name: "table",
			text: "-- t/{} --\nfw_ver: 28.39.1002\n\nempty:\nspace: \nrate: 400 Gb/sec (4X NDR)\n" +
				"odd: a: b -> c\nsub/0: x\n0000:17:00.0 -> ../u: v\n-- t/more --\ny\n",
			want: map[string]string{
				"t/": "", "t/fw_ver": "28.39.1002\n", "t/empty": "\n", "t/space": "\n", "t/rate": "400 Gb/sec (4X NDR)\n",
				"t/odd": "a: b -> c\n", "t/sub/": "", "t/sub/0": "x\n", "t/0000:17:00.0": "-> ../u: v", "t/more": "y\n",
			},
		},
		{
			name: "empty table",
			text: "-- t/{} --\n",
			want: map[string]string{"t/": ""},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := archive.Unpack([]byte(tt.text), dir); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, list(t, dir)); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		text string
		want string
	}{
		{"absolute file", "-- /etc/x --\n", "inside the tree"},
		{"file above", "-- ../x --\n", "inside the tree"},
		{"file above by a detour", "-- a/../../x --\n", "inside the tree"},
		{"unclean file", "-- a//x --\n", "clean"},
		{"directory above", "-- ../x/ --\n", "inside the tree"},
		{"absolute directory", "-- /x/ --\n", "inside the tree"},
		{"table above", "-- ../x/{} --\na: b\n", "inside the tree"},
		{"table with a file above", "-- x/{} --\n../../a: b\n", "inside the tree"},
		{"table without a value", "-- x/{} --\nnothing\n", "NAME: VALUE"},
		{"absolute link", "-- a -> /etc --\n", "inside the tree"},
		{"link above", "-- a/b -> ../../c --\n", "inside the tree"},
		{"unclean link", "-- a -> b/../c --\n", "clean"},
		{"link in a table above", "-- x/{} --\na -> ../../b\n", "inside the tree"},
		{"name of a link above", "-- ../a -> b --\n", "inside the tree"},
		{"file below a link", "-- a/ --\n-- b -> a --\n-- b/c --\n", "b is a link"},
		{"file far below a link", "-- a/ --\n-- b -> a --\n-- b/c/d/e --\n", "b is a link"},
		{"directory below a link", "-- a/ --\n-- b -> a --\n-- b/c/ --\n", "b is a link"},
		{"table at a link", "-- a/ --\n-- b -> a --\n-- b/{} --\nc: d\n", "b is a link"},
		{"file in place of a link", "-- a --\n-- b -> a --\n-- b --\n", "exists"},
		{"file twice", "-- a --\n-- a --\n", "exists"},
		{"file below a file", "-- a --\n-- a/b --\n", "file exists"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := archive.Unpack([]byte(tt.text), t.TempDir())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestUnpackThroughOldLink: a link that was there before the archive leads
// nowhere either.
func TestUnpackThroughOldLink(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := archive.Unpack([]byte("-- a/b --\n"), dir); err == nil {
		t.Error("no error")
	}
	if diff := cmp.Diff(map[string]string{}, list(t, outside)); diff != "" {
		t.Errorf("outside (-want +got):\n%s", diff)
	}
}

func TestUnpackNowhere(t *testing.T) {
	t.Parallel()
	err := archive.Unpack(nil, filepath.Join(t.TempDir(), "missing"))
	if !os.IsNotExist(err) {
		t.Errorf("error %v, want os.ErrNotExist", err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add("-- a/b --\nx\n-- c -> a --\n-- d/ --\n-- e/{} --\nf: g\nh -> ../a\n")
	f.Add("-- ../x --\n")
	f.Add("-- /x --\n")
	f.Add("-- a -> .. --\n-- a/x --\n")
	f.Add("-- a -> b --\n-- b -> a --\n-- a/x --\n")
	f.Add("-- a/b/c -> ../../s --\n-- z -> a/b/c/../../.. --\n-- z/x --\n")
	f.Add("-- a/ -> b --\n-- a -> b/ --\n-- {} --\n-- /{} --\n-- ./ --\n-- . --\n")
	f.Add("-- a/{} --\n../b: c\n../d -> ../../e\n: x\n/: y\n")
	f.Fuzz(func(t *testing.T, text string) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "1/2/3")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		_ = archive.Unpack([]byte(text), dir)
		inside := list(t, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"1/": "", "1/2/": ""}, list(t, outer)); diff != "" {
			t.Errorf("outside (-want +got):\n%s", diff)
		}
		for name, content := range inside {
			target, isLink := strings.CutPrefix(content, "-> ")
			if isLink && !filepath.IsLocal(filepath.Join(filepath.Dir(name), target)) {
				t.Errorf("link %s to %s leads out", name, target)
			}
		}
	})
}

func BenchmarkUnpack(b *testing.B) {
	var text strings.Builder
	for i := range 10 {
		fmt.Fprintf(&text, "-- sys/devices/pci0000:16/infiniband/mlx5_%d/ports/1/hw_counters/{} --\n", i)
		for j := range 100 {
			fmt.Fprintf(&text, "counter_%d: %d\n", j, i*j)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := archive.Unpack([]byte(text.String()), b.TempDir()); err != nil {
			b.Fatal(err)
		}
	}
}

// list returns what is in a directory: contents of files, "-> TARGET" of links
// and nothing of directories, whose names end in a slash.
func list(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel := strings.TrimPrefix(name, dir+"/")
		switch {
		case e.IsDir():
			found[rel+"/"] = ""
		case e.Type() == fs.ModeSymlink:
			target, err := os.Readlink(name)
			found[rel] = "-> " + target
			return err
		default:
			b, err := os.ReadFile(filepath.Clean(name))
			found[rel] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
