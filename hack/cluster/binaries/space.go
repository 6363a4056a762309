package binaries

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
)

// checkSpace wants room for what is missing in the file systems of the
// directories. The figures are generous: Go's build cache may have most of it.
func checkSpace(missing []recipe, dirs []string) error {
	var need int64
	for _, r := range missing {
		need += r.space()
	}
	var errs []error
	for _, dir := range dirs {
		free, err := freeSpace(dir)
		if err == nil && free < need {
			err = fmt.Errorf("%s has %d MB: %d MB are needed (%w)", dir, free/1e6, need/1e6, syscall.ENOSPC)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// freeSpace is what we may write in the file system of a directory, which need
// not be there yet.
func freeSpace(dir string) (int64, error) {
	for {
		var stat syscall.Statfs_t
		err := syscall.Statfs(dir, &stat)
		if err == nil {
			return int64(stat.Bavail) * stat.Bsize, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return 0, fmt.Errorf("free space of %s: %w", dir, err)
		}
		dir = filepath.Dir(dir)
	}
}
