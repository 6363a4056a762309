//go:build linux

package lab

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// copyFile copies a file's content and mode; the directories above to are made.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := mkdirs(filepath.Dir(to)); err != nil {
		return err
	}
	return os.WriteFile(to, raw, info.Mode().Perm())
}

// mkdirs makes directories with their parents.
func mkdirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// removeAll removes a space separated list of paths from a directory.
func removeAll(dir, paths string) error {
	for path := range strings.FieldsSeq(paths) {
		if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	return nil
}

// emptyDir removes everything in dir.
func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// findFiles are the regular files below dir whose name matches a pattern.
func findFiles(dir, pattern string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		matched, err := filepath.Match(pattern, e.Name())
		if matched && e.Type().IsRegular() {
			found = append(found, path)
		}
		return err
	})
	return found, err
}
