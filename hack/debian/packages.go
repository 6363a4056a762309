package debian

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/renameio/v2"

	"railhead/hack/program"
)

// Package is one binary package.
type Package struct{ Name, Version string }

// String is the package as apt takes it.
func (p Package) String() string { return p.Name + "=" + p.Version }

// Strings is a list of packages as apt takes them.
func Strings(packages []Package) []string {
	names := make([]string, len(packages))
	for i, p := range packages {
		names[i] = p.String()
	}
	return names
}

// closuresDir remembers what Closure found in the present lists: apt takes a second for each.
const closuresDir = "closures"

// Closure is what an empty system would install for the named packages: they and all that they depend on.
func (s *Suite) Closure(ctx context.Context, names ...string) ([]Package, error) {
	memory := s.path(filepath.Join(closuresDir, fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(names, " "))))))
	if text, err := os.ReadFile(memory); err == nil {
		return parseInstalls(string(text)), nil
	}
	args := append([]string{"install", "--simulate", "--yes", "--no-install-recommends"}, names...)
	out, err := program.Output(s.apt(ctx, "apt-get", args...))
	if err != nil {
		return nil, err
	}
	return parseInstalls(string(out)), renameio.WriteFile(memory, out, 0o644) // a half one would be taken for the whole
}

// parseInstalls finds the packages in the output of a simulated installation.
func parseInstalls(text string) []Package {
	line := regexp.MustCompile(`(?m)^Inst (\S+) \((\S+) `)
	var packages []Package
	for _, m := range line.FindAllStringSubmatch(text, -1) {
		packages = append(packages, Package{Name: m[1], Version: m[2]})
	}
	return packages
}

// Names are the names of the suite's packages that begin with prefix.
func (s *Suite) Names(ctx context.Context, prefix string) ([]string, error) {
	out, err := program.Output(s.apt(ctx, "apt-cache", "pkgnames", prefix))
	return strings.Fields(string(out)), err
}

// Fetch downloads packages into dir and returns the files.
func (s *Suite) Fetch(ctx context.Context, dir string, packages []Package) ([]string, error) {
	cmd := s.apt(ctx, "apt-get", append([]string{"download", "-q"}, Strings(packages)...)...)
	cmd.Dir = dir
	if err := program.Run(cmd); err != nil {
		return nil, fmt.Errorf("download from %s (its packages may have moved on: refresh the lists): %w", s.Suite, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err == nil && len(files) != len(packages) {
		err = fmt.Errorf("download from %s: %d files for %d packages", s.Suite, len(files), len(packages))
	}
	return files, err
}

// Unpack downloads packages into scratch and unpacks them into root. Files keep their owners when we are root.
func (s *Suite) Unpack(ctx context.Context, root, scratch string, packages []Package) error {
	files, err := s.Fetch(ctx, scratch, packages)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := program.Run(program.Command(ctx, "dpkg-deb", "--extract", file, root)); err != nil {
			return err
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}
