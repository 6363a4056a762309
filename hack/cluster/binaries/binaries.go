// Package binaries has the programs that a cluster is made of: Kubernetes,
// etcd, containerd, CNI plugins and CoreDNS, compiled from their Go
// modules at the versions in the go.mod files below this directory, and runc
// and nft, which are Debian's; and Multus, which ours is measured against. What
// was made stays in a cache outside of the checkout. It starts none of the programs
// and installs nothing.
package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Family is a group of programs that are made together.
type Family string

// All families.
const (
	CNI        Family = "cni"        // bridge, host-local, macvlan, sbr and other plugins of the CNI project; cnitool
	Multus     Family = "multus"     // multus-daemon, multus-shim; no cluster needs them
	Etcd       Family = "etcd"       // etcd
	Containerd Family = "containerd" // containerd, containerd-shim-runc-v2, ctr
	Kubernetes Family = "kubernetes" // kube-*, kubelet, kubectl, and coredns, which shares most of its packages
	Debian     Family = "debian"     // runc, nft
)

// Set is where programs are. It does not change.
type Set struct {
	dir   string
	paths map[string]string // of programs, by name
}

// The directories of a set.
const (
	programsDir = "bin"
	cniDir      = "cni"
)

// Ensure makes the programs of the families that are not in the cache yet, or
// of all that clusters are made of if none is named, and returns where they are.
//
// The cache is $RAILHEAD_CACHE, else railhead in the user's cache directory.
// Processes may share it: a second one waits for the first and finds its work
// done. Making all takes 10 to 20 minutes on two cores and needs the working
// directory within the module railhead, Go, apt, dpkg-deb, a network and 8 GB
// of disk; an interrupted run goes on where it was, because the Go command
// keeps compiled packages in its own cache. Progress receives a line a step;
// nil is silence.
//
// All is downloaded before anything is compiled. A family that does not compile
// does not keep the others from being made.
func Ensure(ctx context.Context, progress io.Writer, families ...Family) (*Set, error) {
	root, err := CacheDir("cluster")
	if err != nil {
		return nil, err
	}
	if progress == nil {
		progress = io.Discard
	}
	log := newLog(progress)
	m, err := newMaker(ctx, newCache(root, log), log)
	if err != nil {
		return nil, err
	}
	return m.ensure(ctx, families)
}

// CacheDir is where something is kept between clusters, by its name: programs
// and images as "cluster".
func CacheDir(name string) (string, error) {
	dir := os.Getenv("RAILHEAD_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("cache (RAILHEAD_CACHE may name one): %w", err)
		}
		dir = filepath.Join(base, "railhead")
	}
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("RAILHEAD_CACHE %q: want an absolute path", dir)
	}
	return filepath.Join(dir, name), nil
}

// Dir has all programs of the set but CNI plugins. It works wherever it is
// mounted as a whole; hidden files in it belong to programs.
func (s *Set) Dir() string { return filepath.Join(s.dir, programsDir) }

// CNIDir has the CNI plugins.
func (s *Set) CNIDir() string { return filepath.Join(s.dir, cniDir) }

// Path is the absolute path of a program. The error for one that the set does
// not have is fs.ErrNotExist.
func (s *Set) Path(program string) (string, error) {
	p, ok := s.paths[program]
	if !ok {
		return "", fmt.Errorf("program %q: not in the families asked for: %w", program, fs.ErrNotExist)
	}
	return p, nil
}

// maker is one run of Ensure.
type maker struct {
	*cache
	log    *log
	golang golang
}

func newMaker(ctx context.Context, c *cache, log *log) (*maker, error) {
	g, err := findGo(ctx)
	if err != nil {
		return nil, err
	}
	return &maker{cache: c, log: log, golang: g}, nil
}

func (m *maker) ensure(ctx context.Context, families []Family) (*Set, error) {
	recipes, err := m.recipes(families)
	if err != nil {
		return nil, err
	}
	if err := m.prepare(ctx, recipes); err != nil {
		return nil, err
	}
	var products []product
	var errs []error
	for _, r := range recipes {
		p, err := m.product(ctx, r)
		if err != nil {
			errs = append(errs, fmt.Errorf("programs of %s: %w", r.family(), err))
			continue
		}
		products = append(products, p)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return m.set(products)
}
