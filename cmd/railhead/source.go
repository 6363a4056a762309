package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"railhead/internal/inventory"
	"railhead/internal/kernel/archive"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/sysfs"
)

// source says which node to look at: this one, or a copy of another.
type source struct {
	root  string
	rails []string
}

func addSourceFlags(cmd *cobra.Command) *source {
	s := &source{}
	cmd.Flags().StringVar(&s.root, "sysfs-root", "/",
		"look at a copy of a node: a directory that holds its sys, proc, etc and dev, or an archive made by hack/capture")
	cmd.Flags().StringSliceVar(&s.rails, "rails", nil,
		"the rails in order, from 0, by netdev, RDMA device or PCI address (default: the PFs with RDMA, in PCI order)")
	return s
}

// node is a node that was looked at.
type node struct {
	fs         sysfs.FS
	inventory  *inventory.Snapshot
	otherNetNS *int // nil where unknown
}

// look reads the node and hands it to use, before a copy that was unpacked is
// removed again.
func (s *source) look(use func(node) error) error {
	if s.root == "/" {
		return s.lookHere(use)
	}
	info, err := os.Stat(s.root)
	if err != nil {
		return fmt.Errorf("--sysfs-root: %w", err)
	}
	if info.IsDir() {
		return s.lookAt(s.root, use)
	}
	dir, err := os.MkdirTemp("", "railhead-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := unpack(s.root, dir); err != nil {
		return fmt.Errorf("--sysfs-root: %w", err)
	}
	return s.lookAt(dir, use)
}

// archiveLimit bounds the archives that are read.
const archiveLimit = 256 << 20

func unpack(file, dir string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, archiveLimit+1))
	if err != nil {
		return err
	}
	if len(text) > archiveLimit {
		return fmt.Errorf("%s: it has more than %d MiB", file, archiveLimit>>20)
	}
	if err := archive.Unpack(text, dir); err != nil {
		return fmt.Errorf("%s is neither a directory nor an archive made by hack/capture: %w", file, err)
	}
	return nil
}

// lookAt reads the copy of a node in a directory.
func (s *source) lookAt(dir string, use func(node) error) error {
	if !isNodeCopy(dir) {
		return fmt.Errorf("--sysfs-root: %s has no directory sys: it is no copy of a node", filepath.Clean(s.root))
	}
	fsys := sysfs.New(dir)
	r, err := inventory.NewArchiveReader(fsys)
	if err != nil {
		return fmt.Errorf("--sysfs-root: %w", err)
	}
	facts := r.Read(nil, inventory.Changes{All: true})
	n := node{fs: fsys, inventory: inventory.Join(facts, inventory.Options{Rails: s.rails})}
	if others := len(facts.Netlink.Elsewhere); others > 0 {
		n.otherNetNS = &others
	}
	return use(n)
}

func isNodeCopy(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "sys"))
	return err == nil && info.IsDir()
}

// lookHere reads the node we run on.
func (s *source) lookHere(use func(node) error) error {
	fsys := sysfs.New("/")
	r, err := inventory.NewReader(fsys)
	if err != nil {
		return err
	}
	defer r.Close()
	facts := r.Read(nil, inventory.Changes{All: true})
	n := node{fs: fsys}
	if others, err := netns.List("/proc"); err == nil {
		count := len(others)
		n.otherNetNS = &count
	} else if !errors.Is(err, fs.ErrPermission) { // without permission not all can be counted
		facts.Problems = append(facts.Problems, err)
	}
	n.inventory = inventory.Join(facts, inventory.Options{Rails: s.rails})
	return use(n)
}
