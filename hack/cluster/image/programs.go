package image

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"railhead/hack/debian"
	"railhead/hack/program"
)

// Programs of this module that are in images.
const (
	railheadPackage   = "railhead/cmd/railhead"
	controllerPackage = "railhead/cmd/railhead-controller"
	cniPackage        = "railhead/cmd/railhead-cni"
	probePackage      = "railhead/hack/cluster/testprograms/probe"
)

// pause is what holds a pod's namespaces: a static program of a few kilobytes of memory that reaps and ends when told.
func (w *workshop) pause(ctx context.Context) (recipe, error) {
	packages, err := w.packages(ctx, "catatonit")
	return recipe{
		inputs: debian.Strings(packages),
		run:    command{program: []string{"/pause"}, arguments: []string{"-P"}},
		fill: func(ctx context.Context, t tree) error {
			return w.unpacked(ctx, packages, func(root string) error {
				return t.add("pause", filepath.Join(root, "usr/bin/catatonit"))
			})
		},
	}, err
}

// railhead is the programs of nodes and of the cluster as they are in this checkout.
func (w *workshop) railhead(ctx context.Context) (recipe, error) {
	inputs, programs := []string{}, map[string]string{}
	for _, pkg := range []string{railheadPackage, controllerPackage, cniPackage} {
		binary, sum, err := w.build(ctx, pkg)
		if err != nil {
			return recipe{}, err
		}
		inputs = append(inputs, sum)
		programs["usr/local/bin/"+path.Base(pkg)] = binary
	}
	return recipe{
		inputs: inputs,
		run:    command{program: []string{"/usr/local/bin/railhead"}},
		fill: func(_ context.Context, t tree) error {
			t["tmp"] = directory(os.ModeSticky | 0o777)
			var errs []error
			for name, binary := range programs {
				errs = append(errs, t.add(name, binary))
			}
			return errors.Join(errs...)
		},
	}, nil
}

// coredns is the cluster's DNS server.
func (w *workshop) coredns() (recipe, error) {
	sum, err := sumOf(w.CoreDNS)
	return recipe{
		inputs: []string{sum},
		run:    command{program: []string{"/coredns"}},
		fill:   func(_ context.Context, t tree) error { return t.add("coredns", w.CoreDNS) },
	}, err
}

// build builds a static program of this module in the cache. The go command leaves alone what has not changed.
func (w *workshop) build(ctx context.Context, pkg string) (binary, sum string, err error) {
	binary = filepath.Join(w.Cache, "bin", path.Base(pkg))
	cmd := program.Command(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=")
	if err := program.Run(cmd); err != nil {
		return "", "", fmt.Errorf("build %s: %w", pkg, err)
	}
	sum, err = sumOf(binary)
	return binary, sum, err
}

// sumOf is a file's digest.
func sumOf(name string) (string, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(content)), nil
}
