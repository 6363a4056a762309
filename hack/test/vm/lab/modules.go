//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// moduleIndex is what depmod knows of one kernel's modules.
type moduleIndex struct {
	// path is a module's file by its name.
	path map[string]string
	// needs are the files that a module's file depends on.
	needs map[string][]string
	// builtin are the names of the modules that are part of the kernel's image.
	builtin map[string]bool
}

// readModuleIndex reads the index of a module directory.
func readModuleIndex(dir string) (moduleIndex, error) {
	deps, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return moduleIndex{}, err
	}
	builtin, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return moduleIndex{}, err
	}
	return parseModuleIndex(string(deps), string(builtin)), nil
}

// parseModuleIndex parses modules.dep ("file: file file") and modules.builtin (one file a line).
func parseModuleIndex(deps, builtin string) moduleIndex {
	index := moduleIndex{path: map[string]string{}, needs: map[string][]string{}, builtin: map[string]bool{}}
	for line := range strings.Lines(deps) {
		path, needs, found := strings.Cut(strings.TrimSpace(line), ":")
		if !found {
			continue
		}
		index.path[moduleName(path)] = path
		index.needs[path] = strings.Fields(needs)
	}
	for path := range strings.FieldsSeq(builtin) {
		index.builtin[moduleName(path)] = true
	}
	return index
}

// moduleName is the name that the kernel uses for a module file or for a name as modprobe takes it.
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return strings.ReplaceAll(name, "-", "_")
}

// loadOrder is the files of the named modules and of all they depend on, each once, in an order in which they can be
// loaded. Built-in modules have no file; a name that the kernel does not know is an error with all such names, unless it
// begins with a question mark.
func (x moduleIndex) loadOrder(names []string) ([]string, error) {
	var order, missing []string
	seen := map[string]bool{}
	var add func(path string)
	add = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		// depmod lists the dependencies of dependencies too, the deepest last.
		for _, need := range slices.Backward(x.needs[path]) {
			add(need)
		}
		order = append(order, path)
	}
	for _, name := range names {
		name, optional := strings.CutPrefix(name, "?")
		name = moduleName(name)
		path, found := x.path[name]
		switch {
		case found:
			add(path)
		case !x.builtin[name] && !optional:
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the kernel has no module %s", strings.Join(missing, ", "))
	}
	return order, nil
}
