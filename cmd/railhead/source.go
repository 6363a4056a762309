package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"railhead/internal/check"
	"railhead/internal/inventory"
	"railhead/internal/kernel/archive"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/sysfs"
	"railhead/internal/simulation"
)

// source says which node to look at: this one, a copy of another, or a simulated
// one.
type source struct {
	root     string
	scenario string
	rails    []string
}

func addSourceFlags(cmd *cobra.Command) *source {
	s := &source{}
	cmd.Flags().StringVar(&s.root, "sysfs-root", "/",
		"look at a copy of a node: a directory that holds its sys, proc, etc and dev, or an archive made by hack/capture")
	cmd.Flags().StringVar(&s.scenario, "simulate", "",
		"look at a simulated node as it begins, or at simulated RDMA on this node, as a scenario describes it")
	cmd.MarkFlagsMutuallyExclusive("sysfs-root", "simulate")
	cmd.Flags().StringSliceVar(&s.rails, "rails", nil,
		"the rails in order, from 0, by netdev, RDMA device or PCI address (default: the PFs with RDMA, in PCI order)")
	return s
}

// look reads the node: its inventory, and the settings around it. A copy that
// had to be unpacked is gone again when it returns.
func (s *source) look() (*check.Node, error) {
	n, err := s.read()
	if err != nil {
		return nil, err
	}
	return n, s.checkRails(n.Inventory)
}

func (s *source) read() (*check.Node, error) {
	switch {
	case s.scenario != "":
		return s.readSimulated()
	case filepath.Clean(s.root) == "/":
		return s.readNode(node.Running(sysfs.New("/")))
	}
	n, err := s.readCopy()
	if err != nil {
		return nil, fmt.Errorf("--sysfs-root %s: %w", s.root, err)
	}
	return n, nil
}

// checkRails wants each rail to be a device, and no device to be two.
func (s *source) checkRails(snapshot *inventory.Snapshot) error {
	rails := map[string]string{}
	for _, name := range s.rails {
		d, ok := snapshot.Device(name)
		if !ok {
			return fmt.Errorf("--rails: there is no netdev, RDMA device or PCI address %q", name)
		}
		if other, ok := rails[d.ID]; ok {
			return fmt.Errorf("--rails: %q and %q are the same device", other, name)
		}
		rails[d.ID] = name
	}
	return nil
}

// readCopy reads the copy of a node: a directory, or an archive of one.
func (s *source) readCopy() (*check.Node, error) {
	info, err := os.Stat(s.root)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return s.readDir(s.root)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is neither a directory nor a file")
	case info.Size() > archiveLimit:
		return nil, fmt.Errorf("it has more than %d MiB", archiveLimit>>20)
	}
	dir, err := os.MkdirTemp("", "railhead-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := unpack(s.root, dir); err != nil {
		return nil, err
	}
	return s.readDir(dir)
}

// archiveLimit bounds the archives that are read.
const archiveLimit = 256 << 20

func unpack(file, dir string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, archiveLimit))
	if err != nil {
		return err
	}
	if err := archive.Unpack(text, dir); err != nil {
		return fmt.Errorf("it is no archive made by hack/capture: %w", err)
	}
	return nil
}

// readDir reads the copy of a node in a directory.
func (s *source) readDir(dir string) (*check.Node, error) {
	switch info, err := os.Stat(filepath.Join(dir, "sys")); {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.IsDir():
		return nil, errors.New("there is no directory sys in it: it is no copy of a node")
	case err != nil:
		return nil, err
	}
	fsys := sysfs.New(dir)
	r, err := inventory.NewArchiveReader(fsys)
	if err != nil {
		return nil, err
	}
	facts := r.Read(nil, inventory.Changes{All: true})
	if len(facts.Netlink.Links) == 0 {
		facts.Problems = append(facts.Problems, fmt.Errorf("%s is missing or has no links: what netlink tells is not known, such as IP addresses and what is in pods; is the copy whole?", inventory.NetlinkFile))
	}
	var otherNetNS *int
	if others := len(facts.Netlink.Elsewhere); others > 0 {
		otherNetNS = &others
	}
	n := check.Gather(fsys, inventory.Join(facts, inventory.Options{Rails: s.rails}), otherNetNS)
	stripRoot(dir, n.Problems, n.Inventory.Problems)
	return n, nil
}

// stripRoot names files in problems as on the node, and not where its copy is.
func stripRoot(dir string, lists ...[]string) {
	for _, problems := range lists {
		for i := range problems {
			problems[i] = strings.ReplaceAll(problems[i], filepath.Clean(dir)+"/", "/")
		}
	}
}

// readSimulated reads what a scenario describes.
func (s *source) readSimulated() (*check.Node, error) {
	scenario, err := simulation.Load(s.scenario)
	if err != nil {
		return nil, fmt.Errorf("--simulate: %w", err)
	}
	simulated, err := simulate(scenario)
	if err != nil {
		return nil, fmt.Errorf("--simulate: %w", err)
	}
	defer simulated.Close()
	return s.readNode(simulated.Node())
}

// readNode reads a node that is up.
func (s *source) readNode(n node.Node) (*check.Node, error) {
	fsys := n.FS()
	r, err := inventory.NewReader(n)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	facts := r.Read(nil, inventory.Changes{All: true})
	var otherNetNS *int
	if others, err := netns.List(fsys.Path("proc")); err == nil {
		count := len(others)
		otherNetNS = &count
	} else if !errors.Is(err, fs.ErrPermission) { // without permission not all can be counted
		facts.Problems = append(facts.Problems, err)
	}
	return check.Gather(fsys, inventory.Join(facts, inventory.Options{Rails: s.rails}), otherNetNS), nil
}
