package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"railhead/internal/validation"
)

// manifestLimit bounds a file of manifests.
const manifestLimit = 64 << 20

// readManifests reads files, directories and, for "-", a stream. Of directories
// it reads what kubectl does: files that end in .yaml, .yml or .json.
func readManifests(names []string, recursive bool, stdin io.Reader) ([]validation.Source, error) {
	var sources []validation.Source
	for _, name := range names {
		if name == "-" {
			source, err := readManifest("standard input", stdin)
			if err != nil {
				return nil, err
			}
			sources = append(sources, source)
			continue
		}
		files, err := manifestFiles(name, recursive)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			source, err := openManifest(file)
			if err != nil {
				return nil, err
			}
			sources = append(sources, source)
		}
	}
	return sources, nil
}

func openManifest(name string) (validation.Source, error) {
	f, err := os.Open(name)
	if err != nil {
		return validation.Source{}, err
	}
	defer f.Close()
	return readManifest(name, f)
}

func readManifest(name string, r io.Reader) (validation.Source, error) {
	text, err := io.ReadAll(io.LimitReader(r, manifestLimit+1))
	if err != nil {
		return validation.Source{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > manifestLimit {
		return validation.Source{}, fmt.Errorf("%s has more than %d MiB", name, manifestLimit>>20)
	}
	return validation.Source{Name: name, Text: text}, nil
}

// manifestFiles returns a file itself, and of a directory its manifests in the
// order of their names.
func manifestFiles(name string, recursive bool) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	var files []string
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && !recursive:
			return fs.SkipDir
		case !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: there are no files in it that end in .yaml, .yml or .json; -R looks into directories below", name)
	}
	return files, nil
}
