package address

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"railhead/internal/kernel/node"
	"railhead/internal/kernel/sysfs"
)

// TestNewRefuses wants a configuration that lacks something to be refused by
// what it lacks.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	whole := Config{
		NodeName: "n1", Kubernetes: &rest.Config{Host: "http://api.example"}, Dir: t.TempDir(),
		BootID: "boot-1", InUse: func() (map[netip.Addr]string, error) { return nil, nil },
	}
	if _, err := New(whole); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"name of the node is empty":  func(c *Config) { c.NodeName = "" },
		"no access to Kubernetes":    func(c *Config) { c.Kubernetes = nil },
		"directory of the journal":   func(c *Config) { c.Dir = "" },
		"no kernel to ask":           func(c *Config) { c.BootID = "" },
		"client of the API server: ": func(c *Config) { c.Kubernetes = &rest.Config{Host: "http://[", APIPath: "/"} },
	} {
		c := whole
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// TestBootID wants the kernel's word for this start of the node.
func TestBootID(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if _, err := bootID(node.Running(sysfs.New(root))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v without a proc, want %v", err, fs.ErrNotExist)
	}
	dir := filepath.Join(root, "proc/sys/kernel/random")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	const want = "c0ffee00-1111-2222-3333-444455556666"
	if err := os.WriteFile(filepath.Join(dir, "boot_id"), []byte(want+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := bootID(node.Running(sysfs.New(root))); got != want || err != nil {
		t.Errorf("it is %q, error %v, want %q", got, err, want)
	}
}

// TestFacts wants facts that were kept to be believed of the same node and boot
// alone, and torn ones of none.
func TestFacts(t *testing.T) {
	t.Parallel()
	disk := &memory{files: map[string][]byte{}}
	me := facts{Name: "n1", UID: "uid-1", BootID: "boot-1"}
	if err := saveFacts(disk, me); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, boot string
		want       bool
	}{{"n1", "boot-1", true}, {"n2", "boot-1", false}, {"n1", "boot-2", false}} {
		if got, ok := loadFacts(disk, test.name, test.boot); ok != test.want || ok && got != me {
			t.Errorf("node %s, %s: %+v, %v, want %v", test.name, test.boot, got, ok, test.want)
		}
	}
	disk.files[factsFile] = disk.files[factsFile][:10]
	if got, ok := loadFacts(disk, "n1", "boot-1"); ok {
		t.Errorf("of a torn file: %+v", got)
	}
}
