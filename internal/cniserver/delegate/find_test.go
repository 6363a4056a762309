package delegate

import (
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
)

// hostRoot is a directory that is another root, with files by their paths. Those
// that begin with -> are symbolic links.
func hostRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, is := strings.CutPrefix(content, "->"); is {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestFind wants plugins where they are on the node: a link leads nowhere else.
func TestFind(t *testing.T) {
	t.Parallel()
	outside := hostRoot(t, map[string]string{"secret": "x"})
	root := hostRoot(t, map[string]string{
		"opt/cni/bin/plain": "x", "opt/cni/bin/directory/x": "x",
		"opt/cni/bin/relative": "->../lib/real", "opt/cni/bin/absolute": "->/opt/cni/lib/real", "opt/cni/lib/real": "x",
		"opt/cni/bin/up":       "->../../../../../../../../../../../opt/cni/lib/real",
		"opt/cni/bin/dangling": "->/opt/none", "opt/cni/bin/loop": "->loop", "opt/cni/bin/outside": "->" + outside + "/secret",
		"second/outside": "x", "linked": "->/second", "opt/cni/bin/proc": "->/proc/self/exe",
	})
	d, err := New(Config{HostRoot: root, BinDirs: []string{"/none", "/opt/cni/bin", "/linked"}})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		plugin, path, want string
		is                 error
	}{
		{plugin: "plain", want: "/opt/cni/bin/plain"},
		{plugin: "relative", want: "/opt/cni/bin/relative"},
		{plugin: "absolute", want: "/opt/cni/bin/absolute"},
		{plugin: "up", want: "/opt/cni/bin/up"},
		{plugin: "outside", want: "/linked/outside"},
		{plugin: "outside", path: "/second:/opt", want: "/second/outside"},
		{plugin: "plain", path: "/second", is: ErrNotThere},
		{plugin: "dangling", is: ErrNotThere},
		{plugin: "proc", is: ErrNotThere},
		{plugin: "loop", is: syscall.ELOOP},
		{plugin: "directory"},
	}
	for _, tt := range tests {
		got, err := d.find(Call{Type: tt.plugin, Path: tt.path})
		if got != tt.want || (err == nil) != (tt.want != "") || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s in %q: %q, %v, want %q, %v", tt.plugin, tt.path, got, err, tt.want, tt.is)
		}
	}
}

// TestFiles wants all configurations that can be read.
func TestFiles(t *testing.T) {
	t.Parallel()
	root := hostRoot(t, map[string]string{
		"etc/cni/net.d/20-b.conf": "b", "etc/cni/net.d/10-a.conflist": "->/srv/a", "srv/a": "a", "etc/cni/net.d/30-c.json": "c",
		"etc/cni/net.d/40-other.txt": "x", "etc/cni/net.d/50-d.conf/x": "x", "etc/cni/net.d/60-e.conf": "->/none",
		"etc/cni/net.d/70-f.conf": strings.Repeat("x", maxFile+1), "etc/cni/net.d/80-g.conf": strings.Repeat("x", 3),
	})
	if err := syscall.Mkfifo(filepath.Join(root, "etc/cni/net.d/55-fifo.conf"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := New(Config{HostRoot: root})
	if err != nil {
		t.Fatal(err)
	}
	files, err := d.Files()
	var got []string
	for _, f := range files {
		got = append(got, f.Path+" "+string(f.Content))
	}
	const at = "/etc/cni/net.d/"
	if diff := cmp.Diff([]string{at + "10-a.conflist a", at + "20-b.conf b", at + "30-c.json c", at + "80-g.conf xxx"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{"50-d", "55-fifo", "60-e", "70-f"} {
		if err == nil || strings.Count(err.Error(), at+name+".conf") != 1 {
			t.Errorf("nothing of %s in: %v", name, err)
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	d.confDir = "/none"
	if files, err := d.Files(); files != nil || err != nil {
		t.Errorf("got %v, %v of no directory", files, err)
	}
}

// TestChroot runs a plugin that is in another root only.
func TestChroot(t *testing.T) {
	kerneltest.NetNS(t, func() {
		root := hostRoot(t, map[string]string{"marker": "another root", "opt/cni/bin/vendor": "->/lib/plugin", "tmp/x": "x"})
		copyProgram(t, root, "/lib/plugin")
		n := newNode(t)
		var err error
		if n.Delegate, err = New(Config{HostRoot: root}); err != nil {
			t.Fatal(err)
		}
		n.record = "/tmp/record"
		c := n.call(t, script{Answer: answered}, nil)
		if _, err := n.Add(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		n.record = filepath.Join(root, n.record)
		got := n.given(t)
		if len(got) != 1 || got[0].Dir != "/" || got[0].Marker != "another root" {
			t.Errorf("got %v", got)
		}
		if _, err := os.Stat("/marker"); err == nil {
			t.Error("the marker is in this root too")
		}
	})
}

// copyProgram copies the test binary into a root, with the libraries that it was
// linked to, which it is under the race detector.
func copyProgram(t *testing.T, root, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	copyFile(t, self, filepath.Join(root, to))
	section := f.Section(".interp")
	if section == nil {
		return // it is static
	}
	interpreter, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	loader := strings.TrimRight(string(interpreter), "\x00")
	copyFile(t, loader, filepath.Join(root, loader))
	libraries, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(loader)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range libraries {
		copyFile(t, filepath.Join(filepath.Dir(real), name), filepath.Join(root, "lib", name))
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, content, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}
