//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// listsFreshFor is how long package lists are used before the mirror is asked again: sid moves daily, and every move
// would make a part of the lab anew.
const listsFreshFor = 7 * 24 * time.Hour

// suite is one Debian suite as apt sees it from directories of its own: its own lists and an empty list of installed
// packages, so that dependencies come out whole and the machine's own apt is neither read nor changed.
type suite struct {
	name string
	dir  string
}

// openSuite sets up the suite's directories and brings its lists up to date when they are old or refresh is asked for.
// Old lists are used when the mirror does not answer.
func openSuite(ctx context.Context, c *cache, from mirror, name string, refresh bool) (*suite, error) {
	s := &suite{name: name, dir: c.aptDir(name)}
	for _, d := range []string{"etc/preferences.d", "etc/apt.conf.d", "etc/sources.list.d", "state/lists/partial", "cache/archives/partial"} {
		if err := mkdirs(s.path(d)); err != nil {
			return nil, err
		}
	}
	transport, err := hostTransport(ctx)
	if err != nil {
		return nil, err
	}
	changed := false
	for file, text := range map[string]string{
		"status": "", "etc/sources.list": aptSources(from, name), "apt.conf": aptConf(s.dir, transport),
	} {
		wrote, err := writeChanged(s.path(file), text)
		if err != nil {
			return nil, err
		}
		changed = changed || wrote
	}
	stamp, err := os.Stat(s.path("updated"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	have := err == nil && !changed
	if have && !refresh && time.Since(stamp.ModTime()) < listsFreshFor {
		return s, nil
	}
	if err := s.update(ctx); err != nil {
		if have && !refresh {
			c.logf("suite %s: going on with lists of %s: %v", name, stamp.ModTime().Format(time.DateOnly), err)
			return s, nil
		}
		return nil, err
	}
	return s, nil
}

// update fetches the package lists.
func (s *suite) update(ctx context.Context) error {
	if err := run(s.apt(ctx, "apt-get", "update", "-q", "--error-on=any")); err != nil {
		return err
	}
	if err := os.RemoveAll(s.path(closuresDir)); err != nil {
		return err
	}
	if err := mkdirs(s.path(closuresDir)); err != nil {
		return err
	}
	return os.WriteFile(s.path("updated"), nil, 0o644)
}

// writeChanged writes a file unless it has that content already: apt takes a new date for a change, and indexes
// everything again.
func writeChanged(path, text string) (bool, error) {
	old, err := os.ReadFile(path)
	if err == nil && string(old) == text {
		return false, nil
	}
	return true, os.WriteFile(path, []byte(text), 0o644)
}

// path is a path in the suite's directory.
func (s *suite) path(name string) string { return filepath.Join(s.dir, name) }

// apt is one of apt's programs on the suite's directories.
func (s *suite) apt(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := command(ctx, program, args...)
	cmd.Env = append(os.Environ(), "APT_CONFIG="+s.path("apt.conf"), "LC_ALL=C")
	return cmd
}

// deb is one binary package.
type deb struct{ Name, Version string }

// String is the package as apt takes it.
func (d deb) String() string { return d.Name + "=" + d.Version }

// debStrings is a list of packages as product inputs and apt arguments.
func debStrings(debs []deb) []string {
	names := make([]string, len(debs))
	for i, d := range debs {
		names[i] = d.String()
	}
	return names
}

// closuresDir remembers what closure found in the present lists: apt takes a second for each.
const closuresDir = "closures"

// closure is what an empty system would install for the named packages.
func (s *suite) closure(ctx context.Context, names ...string) ([]deb, error) {
	memory := s.path(filepath.Join(closuresDir, key(names)))
	if text, err := os.ReadFile(memory); err == nil {
		return parseInstalls(string(text)), nil
	}
	args := append([]string{"install", "--simulate", "--yes", "--no-install-recommends"}, names...)
	out, err := output(s.apt(ctx, "apt-get", args...))
	if err != nil {
		return nil, err
	}
	return parseInstalls(string(out)), os.WriteFile(memory, out, 0o644)
}

// parseInstalls finds the packages in the output of a simulated installation.
func parseInstalls(text string) []deb {
	line := regexp.MustCompile(`(?m)^Inst (\S+) \((\S+) `)
	var debs []deb
	for _, m := range line.FindAllStringSubmatch(text, -1) {
		debs = append(debs, deb{Name: m[1], Version: m[2]})
	}
	return debs
}

// packageNames are the names of the suite's packages that begin with prefix.
func (s *suite) packageNames(ctx context.Context, prefix string) ([]string, error) {
	out, err := output(s.apt(ctx, "apt-cache", "pkgnames", prefix))
	return strings.Fields(string(out)), err
}

// fetch downloads the packages into dir and returns the files.
func (s *suite) fetch(ctx context.Context, dir string, debs []deb) ([]string, error) {
	cmd := s.apt(ctx, "apt-get", append([]string{"download", "-q"}, debStrings(debs)...)...)
	cmd.Dir = dir
	if err := run(cmd); err != nil {
		return nil, fmt.Errorf("download from %s (its packages may have moved on: refresh the lists): %w", s.name, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err == nil && len(files) != len(debs) {
		err = fmt.Errorf("download from %s: %d files for %d packages", s.name, len(files), len(debs))
	}
	return files, err
}

// install downloads the packages into scratch and unpacks them into root: no maintainer script runs.
func (s *suite) install(ctx context.Context, root, scratch string, debs []deb) error {
	files, err := s.fetch(ctx, scratch, debs)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := run(command(ctx, "dpkg-deb", "--extract", file, root)); err != nil {
			return err
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}

// aptSources is the suite's only source.
func aptSources(from mirror, suite string) string {
	keyring := from.Keyring
	if keyring == "" {
		keyring = debianKeyring
	}
	return fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, from.URI, suite)
}

// aptConf keeps apt within dir. The machine's own configuration is not read, as it may have hooks that work on the
// machine's own cache; what it says of the way to the mirror is passed in as transport.
func aptConf(dir, transport string) string {
	return fmt.Sprintf(`Dir::Etc "%[1]s/etc";
Dir::Etc::netrc "/etc/apt/auth.conf";
Dir::Etc::netrcparts "/etc/apt/auth.conf.d";
Dir::State "%[1]s/state";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
Dir::Cache::srcpkgcache "";
APT::Architecture "amd64";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
Acquire::Retries "3";
// A machine whose clock is off would call a rolling suite expired. Signatures are still checked.
Acquire::Check-Valid-Until "false";
Acquire::Check-Date "false";
%[2]s`, dir, transport)
}

// hostTransport is what the machine's apt configuration says of HTTP: proxies above all.
func hostTransport(ctx context.Context) (string, error) {
	cmd := command(ctx, "apt-config", "dump", "--no-empty")
	out, err := output(cmd)
	if err != nil {
		return "", err
	}
	return transportSettings(string(out)), nil
}

// transportSettings are the lines of a configuration dump about HTTP.
func transportSettings(dump string) string {
	var kept strings.Builder
	for line := range strings.Lines(dump) {
		if strings.HasPrefix(line, "Acquire::http") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
