package binaries

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"railhead/hack/debian"
	"railhead/hack/program"
)

// debianSuite is the oldest that has what a current Kubernetes wants: its runc
// runs with the C library of every machine that is as new or newer.
const debianSuite = "bookworm"

// packages is the recipe of programs that are not written in Go, or not
// without C: runc, which runs containers, and nft, with which kube-proxy speaks.
type packages struct {
	dir string // of the suite's lists
	log *log
}

func (p *packages) family() Family { return Debian }

// inputs do not have the packages' versions: what was fetched is good until
// the cache is removed, and asking for them takes time and a network.
func (p *packages) inputs() []string {
	return []string{debianSuite, runtime.GOARCH, "runc", "nftables", nftScript}
}

func (p *packages) space() int64 { return 200e6 }

// fetch leaves the download to make: it takes seconds.
func (p *packages) fetch(context.Context) error { return nil }

func (p *packages) make(ctx context.Context, dir, scratch string) (map[string]string, error) {
	suite, err := debian.Open(ctx, debian.Config{Dir: p.dir, Suite: debianSuite, Architecture: runtime.GOARCH, Logf: p.log.printf})
	if err != nil {
		return nil, err
	}
	defer suite.Close()
	closure, err := suite.Closure(ctx, "runc", "nftables")
	if err != nil {
		return nil, err
	}
	root, debs := filepath.Join(scratch, "root"), filepath.Join(scratch, "debs")
	if err := errors.Join(os.Mkdir(root, 0o755), os.Mkdir(debs, 0o755)); err != nil {
		return nil, err
	}
	if err := suite.Unpack(ctx, root, debs, closure); err != nil {
		return nil, err
	}
	if err := errors.Join(addRunc(ctx, root, dir), addNft(root, dir)); err != nil {
		return nil, err
	}
	return map[string]string{"runc": versionOf(closure, "runc"), "nft": versionOf(closure, "nftables")}, nil
}

func versionOf(list []debian.Package, name string) string {
	i := slices.IndexFunc(list, func(p debian.Package) bool { return p.Name == name })
	if i < 0 {
		return ""
	}
	return list[i].Version
}

// addRunc takes runc as it is: it starts itself again within the container it
// makes, and would not find libraries of its own there. It needs the machine's
// libc and libseccomp, which every machine with apt has.
func addRunc(ctx context.Context, root, dir string) error {
	path := filepath.Join(dir, "runc")
	if err := os.Link(filepath.Join(root, "usr/sbin/runc"), path); err != nil {
		return err
	}
	if err := program.Run(program.Command(ctx, path, "--version")); err != nil {
		return fmt.Errorf("runc of Debian %s does not run with this machine's libraries: %w", debianSuite, err)
	}
	return nil
}

// nftDir has nft and its libraries, below the directory of programs.
const nftDir = ".nft"

// nftScript runs nft by its own loader with its own libraries, whatever the
// machine has.
const nftScript = `#!/bin/sh
here=${0%/*}/` + nftDir + `
exec "$here/LOADER" --library-path "$here" --argv0 nft "$here/nft" "$@"
`

func addNft(root, dir string) error {
	const nft = "usr/sbin/nft"
	libraries, err := debian.Libraries(root, nft)
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, nftDir), 0o755); err != nil {
		return err
	}
	loader := ""
	for _, file := range append(libraries, nft) {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "ld-") {
			loader = name
		}
		if err := copyFile(filepath.Join(root, file), filepath.Join(dir, nftDir, name)); err != nil {
			return err
		}
	}
	if loader == "" {
		return fmt.Errorf("nft has no loader among its libraries %q", libraries)
	}
	return os.WriteFile(filepath.Join(dir, "nft"), []byte(strings.ReplaceAll(nftScript, "LOADER", loader)), 0o755)
}

// copyFile copies a program or library, following links.
func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}
