package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/node"
	"railhead/internal/kernel/sysfs"
	"railhead/internal/simulation"
)

// simulatedNode is a running simulation, in a directory of its own. The lock on
// that says that somebody uses it.
type simulatedNode struct {
	*simulation.Simulation
	dir  string
	lock *os.File
}

// simulate starts what a scenario describes: a node, or RDMA on the one we run on.
func simulate(scenario *simulation.Scenario) (*simulatedNode, error) {
	sweep(memory())
	dir, lock, err := nodeDir(memory())
	if err != nil {
		return nil, err
	}
	n := &simulatedNode{dir: dir, lock: lock}
	dir = filepath.Join(dir, "node")
	if scenario.RealNode {
		n.Simulation, err = simulation.StartOn(node.Running(sysfs.New("/")), scenario, dir, time.Now)
	} else {
		n.Simulation, err = simulation.Start(scenario, dir, time.Now)
	}
	if err != nil {
		return nil, errors.Join(err, n.remove())
	}
	return n, nil
}

// Close ends the simulation and leaves nothing of it.
func (n *simulatedNode) Close() error { return errors.Join(n.Simulation.Close(), n.remove()) }

func (n *simulatedNode) remove() error { return errors.Join(os.RemoveAll(n.dir), n.lock.Close()) }

// memory is where files are in memory, as those of a kernel are; else where
// temporary files are.
func memory() string {
	const dir = "/dev/shm"
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return os.TempDir()
	}
	return dir
}

// nodePrefix is what the names of directories of simulated nodes begin with.
const nodePrefix = "railhead-node-"

// nodeDir makes a directory for a simulated node, and locks it for as long as
// the file is open.
func nodeDir(parent string) (string, *os.File, error) {
	dir, err := os.MkdirTemp(parent, nodePrefix)
	if err != nil {
		return "", nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, "node"), 0o700); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	lock, err := lockDir(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, lock, nil
}

// lockDir locks a directory that nobody else has locked.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	}
	return f, nil
}

// sweep removes what agents left that were killed. What is locked belongs to
// one that runs, and what cannot be removed to another user.
func sweep(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, nodePrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		lock, err := lockDir(dir)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}
}
