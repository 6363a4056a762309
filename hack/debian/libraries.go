package debian

import (
	"debug/elf"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Libraries are the files below root that a program there is linked with, and
// these with each other, its loader among them: paths relative to root, each once.
// A static program has none. Root is where packages with all that they depend
// on are unpacked.
func Libraries(root, program string) ([]string, error) {
	l := linker{root: root}
	err := l.add(program)
	return l.found, err
}

// linker is one run of Libraries.
type linker struct {
	root  string
	found []string
}

// add adds what a file needs.
func (l *linker) add(name string) error {
	f, err := elf.Open(filepath.Join(l.root, name))
	if err != nil {
		return err
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if loader := Interpreter(f); loader != "" { // where the packages have it, and not a link under its full path
		needed = append([]string{path.Base(loader)}, needed...)
	}
	for _, library := range needed {
		file, err := l.locate(library)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if slices.Contains(l.found, file) {
			continue
		}
		l.found = append(l.found, file)
		if err := l.add(file); err != nil {
			return err
		}
	}
	return nil
}

// locate is where the root has a library.
func (l *linker) locate(library string) (string, error) {
	for _, pattern := range []string{"usr/lib/*-linux-gnu", "lib/*-linux-gnu"} {
		paths, err := filepath.Glob(filepath.Join(l.root, pattern, library))
		if err != nil {
			return "", err
		}
		if len(paths) > 0 {
			return filepath.Rel(l.root, paths[0])
		}
	}
	return "", fmt.Errorf("library %s is not in %s", library, l.root)
}

// Interpreter is the path of the loader of a dynamic program. Libraries and static
// programs name none.
func Interpreter(f *elf.File) string {
	section := f.Section(".interp")
	if section == nil {
		return ""
	}
	data, err := section.Data()
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(data), "\x00")
}
