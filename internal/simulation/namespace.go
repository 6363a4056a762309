package simulation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/netns"
)

// namespace is a network namespace: its kernel, its view of sysfs, and a plain
// file that stands for it in proc.
type namespace struct {
	id     netns.ID
	number int
	file   string // its inode is that of the namespace
	kernel *fakekernel.Kernel
	tree   *tree // has sys at its root

	refused, delayed map[fakekernel.Request]fault

	handles int  // how many hold it open
	isOver  bool // its last process has ended
}

// newNamespace makes a namespace whose file is below dir. The file stays when
// the namespace is gone, so that no other gets its inode.
func newNamespace(dir string, number int, facts fakekernel.Facts, t *tree) (*namespace, error) {
	file := filepath.Join(dir, strconv.Itoa(number))
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return nil, err
	}
	id, err := netns.Stat(file)
	if err != nil {
		return nil, err
	}
	return &namespace{id: id, number: number, file: file, kernel: fakekernel.New(facts), tree: t}, nil
}

// sysfs opens its view of sysfs.
func (n *namespace) sysfs() (*os.File, error) {
	f, err := os.Open(n.tree.path("sys"))
	if err != nil {
		return nil, fmt.Errorf("sysfs of %v: %w", n.id, err)
	}
	return f, nil
}

// end removes what is left of a namespace that is gone.
func (n *namespace) end() error {
	return errors.Join(n.tree.done(), os.RemoveAll(n.tree.root))
}
