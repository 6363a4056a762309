package sysfs

import (
	"errors"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// ModuleOption is a line "options MODULE NAME=VALUE …" of modprobe.d(5).
type ModuleOption struct {
	File   string // where it stands on the system: /etc/modprobe.d/ib_core.conf
	Module string
	Params map[string]string
}

// modprobeMax bounds a file of modprobe.d.
const modprobeMax = 1 << 20

// ModuleOptions returns the options lines of modprobe.d(5) in the order in
// which modprobe takes them: files by base name, whichever directory they are
// in, and lines as they stand. Later ones count. They say what a module gets
// when it is loaded next, not what it has: see [FS.Module]. Names of modules
// and parameters have _ for -.
func (fs FS) ModuleOptions() ([]ModuleOption, error) {
	files, err := fs.modprobeFiles()
	errs := []error{err}
	var options []ModuleOption
	for _, file := range files {
		text, err := fs.modprobeFile(file)
		errs = append(errs, err)
		for _, option := range parseModprobe(text) {
			option.File = file
			options = append(options, option)
		}
	}
	return options, errors.Join(errs...)
}

// modprobeFiles returns the files of modprobe.d by base name. A file hides
// those of the same name in the directories after its own.
func (fs FS) modprobeFiles() ([]string, error) {
	dirs := []string{"/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"}
	byName := make(map[string]string)
	var errs []error
	for _, dir := range slices.Backward(dirs) {
		dir += "/modprobe.d"
		found, err := fs.configNames(dir)
		errs = append(errs, err)
		for _, name := range found {
			if strings.HasSuffix(name, ".conf") && !strings.HasPrefix(name, ".") {
				byName[name] = path.Join(dir, name)
			}
		}
	}
	var files []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		files = append(files, byName[name])
	}
	return files, errors.Join(errs...)
}

// modprobeFile returns the text of a file of modprobe.d. Links to nothing and
// to /dev/null are how an administrator hides a file of the distribution.
func (fs FS) modprobeFile(name string) (string, error) {
	real, err := fs.resolve(name)
	if errors.Is(err, os.ErrNotExist) || real == fs.Path(os.DevNull) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	b, err := readRegular(real, modprobeMax)
	return string(b), err
}

// parseModprobe returns the options lines of a file. Lines of other commands
// and such as modprobe would not understand are left out.
func parseModprobe(text string) []ModuleOption {
	var options []ModuleOption
	for _, line := range logicalLines(text) {
		command, rest := cutField(line)
		module, rest := cutField(rest)
		if command != "options" || module == "" {
			continue
		}
		o := ModuleOption{Module: underscores(module), Params: make(map[string]string)}
		for _, p := range parseParams(rest) {
			o.Params[underscores(p.Name)] = p.Value
		}
		options = append(options, o)
	}
	return options
}

// logicalLines splits a text into its lines without comments. A backslash
// joins a line with the next, a comment too; before anything else it counts
// for nothing.
func logicalLines(text string) []string {
	var lines []string
	var line strings.Builder
	flush := func() {
		if s := line.String(); s != "" && s[0] != '#' {
			lines = append(lines, s)
		}
		line.Reset()
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			flush()
		case c != '\\':
			line.WriteByte(c)
		case i+1 < len(text):
			i++
			if text[i] != '\n' {
				line.WriteByte(text[i])
			}
		}
	}
	flush()
	return lines
}

// cutField cuts the first word off a line.
func cutField(s string) (field, rest string) {
	s = strings.TrimLeft(s, paramSpace)
	if i := strings.IndexAny(s, paramSpace); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}
