// Package cniinstall puts Railhead into the way of a node's container runtime and
// takes it out again: the CNI program with its other names, and the network
// configuration that makes it the first to be called.
//
// It writes files and starts nothing. It never writes over what is another
// project's, and it keeps right what it has written.
package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

const (
	// Program is the name of our CNI program, and the type of our plugin.
	Program = "railhead-cni"
	// Network is the name of our network.
	Network = "railhead"
	// File is the name of our configuration. Runtimes take the first by name.
	File = "00-railhead.conflist"
)

// Names are the other names of the program: networks written for other projects
// ask for these types.
func Names() []string {
	return []string{"spiderpool", "coordinator", "rdma", "sriov", "ib-sriov", "ipoib", "ifacer"}
}

// Config says what is installed and where. All paths are as this process sees them.
type Config struct {
	Program string // the file of railhead-cni that is installed
	BinDir  string // where the node's runtime looks for plugins
	ConfDir string // where it looks for networks
	Socket  string // the agent's, as the node sees it
}

// Phase is how far an installation is.
type Phase int

const (
	// Waiting is for the cluster's own network: until it is there, the runtime is told of none.
	Waiting Phase = iota
	// Installed is when the runtime calls us.
	Installed
	// Below is when Multus is in front, and calls us for the networks that ask for us.
	Below
)

func (p Phase) String() string {
	return [...]string{"waiting for the cluster's own network", "installed", "below Multus"}[p]
}

// State is what one pass found and did.
type State struct {
	Phase    Phase
	Cluster  ClusterNetwork // the zero value where there is none
	Foreign  []string       // paths with one of our names that are another project's, and stay
	Problems []string       // what somebody should look at: a path, what is the matter, what to do
	Changed  []string       // paths that were written or removed in this pass
}

// Installer installs. It is not safe for concurrent use; several of them on one
// node, in any processes, are.
type Installer struct {
	config Config
	disk   disk
	now    func() time.Time

	// A network's file may be gone for a moment while it is written anew. Only one
	// that stays away takes ours with it.
	missingSince time.Time
	grace        time.Duration

	settle, pause, quiet time.Duration // see Run
}

// New returns an installer. Nothing is done yet.
func New(config Config) *Installer {
	return &Installer{
		config: config, now: time.Now, grace: 10 * time.Second,
		settle: 200 * time.Millisecond, pause: 30 * time.Second, quiet: 5 * time.Minute,
	}
}

// Ensure makes one pass: whatever is not as it should be is put right, and what
// is right is not touched. It goes on after errors; each names a path and what
// to do.
func (i *Installer) Ensure(ctx context.Context) (State, error) {
	var s State
	err := i.locked(ctx, i.config.BinDir, func() error { return i.installPrograms(&s) })
	if err != nil {
		// A network without its program would keep every pod of the node from starting.
		err = fmt.Errorf("CNI programs: %w", err)
		if info, missing := i.disk.lstat(i.program()); missing != nil || !info.Mode().IsRegular() {
			return s, err
		}
	}
	conf := i.locked(ctx, i.config.ConfDir, func() error { return i.installNetwork(&s) })
	if errors.Is(conf, fs.ErrNotExist) && !i.disk.exists(i.config.ConfDir) {
		conf = nil // whoever brings the cluster's network makes the directory
	}
	if conf != nil {
		conf = fmt.Errorf("CNI network: %w", conf)
	}
	return s, errors.Join(err, conf)
}

// Remove takes away what Ensure brought, the network first, so that the runtime
// is back at the cluster's own before programs go. What is another project's
// stays. It goes on after errors and may be called again; while the network could
// not be removed, its program stays. Changed of its state are the paths that are
// gone.
func (i *Installer) Remove(ctx context.Context) (State, error) {
	var s State
	conf := i.locked(ctx, i.config.ConfDir, func() error { return i.removeNetwork(&s) })
	if errors.Is(conf, fs.ErrNotExist) && !i.disk.exists(i.config.ConfDir) {
		conf = nil
	}
	bin := i.locked(ctx, i.config.BinDir, func() error { return i.removePrograms(&s) })
	if errors.Is(bin, fs.ErrNotExist) && !i.disk.exists(i.config.BinDir) {
		bin = nil
	}
	return s, errors.Join(conf, bin)
}

func (i *Installer) program() string { return filepath.Join(i.config.BinDir, Program) }

// locked does something while nobody else does with the same directory.
func (i *Installer) locked(ctx context.Context, dir string, do func() error) error {
	unlock, err := i.disk.lock(ctx, dir)
	if err != nil {
		return fmt.Errorf("%w%s", err, advice(err))
	}
	return errors.Join(do(), unlock())
}

// advice is what to do about an error of the file system.
func advice(err error) string {
	switch {
	case errors.Is(err, errReadOnly):
		return "; mount the node's directory so that it can be written"
	case errors.Is(err, fs.ErrPermission):
		return "; run the agent as root, and with this directory of the node writable"
	case errors.Is(err, fs.ErrNotExist):
		return "; mount the node's directory there, or name another one"
	case errors.Is(err, errNoSpace):
		return "; free some space on the node"
	}
	return ""
}

// failed is an error at a path, with advice.
func failed(what, path string, err error) error {
	text := err.Error()
	if strings.Contains(text, path) {
		return fmt.Errorf("%s: %w%s", what, err, advice(err))
	}
	return fmt.Errorf("%s %s: %w%s", what, path, err, advice(err))
}
