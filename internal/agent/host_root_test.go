package agent

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSeenNetNS(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"run/netns", "var", "proc/7/ns"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/run", filepath.Join(root, "var/run")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", filepath.Join(root, "var/loop")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, root, path, want string }{
		{"an absolute link stays in the root", root, "/var/run/netns/cni-1", root + "/run/netns/cni-1"},
		{"no link", root, "/run/netns/cni-1", root + "/run/netns/cni-1"},
		{"of a process", root, "/proc/7/ns/net", root + "/proc/7/ns/net"},
		{"a directory that is not there", root, "/var/lib/netns/cni-1", root + "/var/lib/netns/cni-1"},
		{"upwards", root, "/run/../../../netns/cni-1", root + "/netns/cni-1"},
		{"no namespace", root, "", ""},
		{"a link to itself", root, "/var/loop/cni-1", "where /var/loop/cni-1 of the node is in " + root + ": too many levels of symbolic links"},
		{"our root is the node's", "", "/var/run/netns/cni-1", "/var/run/netns/cni-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := networking{config: Config{CNI: &CNI{HostRoot: test.root}}}
			got, err := r.seenNetNS(test.path)
			if err != nil {
				got += err.Error()
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
