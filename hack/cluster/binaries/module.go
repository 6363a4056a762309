package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	modpath "golang.org/x/mod/module"
)

// module is the recipe of programs that are compiled together from one module,
// so that a package which several of them use is compiled once.
type module struct {
	source
	golang   golang
	name     Family
	files    map[string]string // of the family's directory: go.mod, go.sum and Go files
	versions map[string]string // of modules, from go.mod
	log      *log
	packages []string // all that are compiled, known after fetch
}

func newModule(g golang, f Family, s source, log *log) (*module, error) {
	m := &module{source: s, golang: g, name: f, log: log, versions: map[string]string{}}
	var err error
	if m.files, err = readSources(filepath.Join(g.sources, string(f))); err != nil {
		return nil, err
	}
	mod, err := modfile.ParseLax("go.mod", []byte(m.files["go.mod"]), nil)
	if err != nil {
		return nil, err
	}
	for _, r := range mod.Require {
		m.versions[r.Mod.Path] = r.Mod.Version
	}
	for name, c := range m.programs {
		if m.versions[c.module] == "" {
			return nil, fmt.Errorf("program %s: go.mod has no version of %s", name, c.module)
		}
	}
	return m, nil
}

// readSources reads go.mod, go.sum and Go files below dir.
func readSources(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{".go", ".mod", ".sum"}, filepath.Ext(file)) {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(file)
		files[name] = string(content)
		return err
	})
	return files, err
}

func (m *module) family() Family { return m.name }

func (m *module) space() int64 { return m.source.space }

func (m *module) inputs() []string {
	all := append([]string{m.golang.version, fmt.Sprint(m.programs), m.linkerFlags()}, buildFlags()...)
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		all = append(all, name, m.files[name])
	}
	return all
}

// targets are the packages of the programs.
func (m *module) targets() []string {
	var all []string
	for _, c := range m.programs {
		all = append(all, c.pkg)
	}
	slices.Sort(all)
	return all
}

// linkerFlags leave out symbols, and write versions into programs.
func (m *module) linkerFlags() string {
	flags := []string{"-ldflags=-s -w"}
	for _, s := range m.stamps {
		flags = append(flags, fmt.Sprintf("-X %s=%s", s.variable, s.text(m.versions[s.module])))
	}
	return strings.Join(flags, " ")
}

// fetch downloads what is compiled: the Go command has to read it to list it.
func (m *module) fetch(ctx context.Context) error {
	var stdout, stderr bytes.Buffer
	cmd := m.golang.command(ctx, m.name, os.TempDir(), append([]string{"list", "-deps"}, m.targets()...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("download modules: %w", goError(ctx, err, stderr.String()))
	}
	m.packages = strings.Fields(stdout.String())
	return nil
}

// make compiles all programs with one command.
func (m *module) make(ctx context.Context, dir, scratch string) (map[string]string, error) {
	args := slices.Concat([]string{"build", "-v", "-o", dir + "/"}, buildFlags(), []string{m.linkerFlags()}, m.targets())
	said, err := m.watch(m.golang.command(ctx, m.name, scratch, args...), dir)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", goError(ctx, err, said))
	}
	return m.rename(dir)
}

// rename gives programs their names, where these are not the ones of their
// packages, and returns their versions.
func (m *module) rename(dir string) (map[string]string, error) {
	versions := map[string]string{}
	var errs []error
	for name, c := range m.programs {
		versions[name] = m.versions[c.module]
		errs = append(errs, os.Rename(filepath.Join(dir, executable(c.pkg)), filepath.Join(dir, name)))
	}
	return versions, errors.Join(errs...)
}

// executable is what the Go command calls a package's program.
func executable(pkg string) string {
	if name, _, ok := modpath.SplitPathVersion(pkg); ok {
		pkg = name
	}
	return path.Base(pkg)
}
