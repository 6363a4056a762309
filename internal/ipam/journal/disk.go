package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Disk is one directory of files with plain names. A crash may lose or tear
// whatever was not synced.
type Disk interface {
	// Read returns a whole file. Where there is none, the error is fs.ErrNotExist.
	Read(name string) ([]byte, error)
	// Append writes at the end of a file and makes the file if there is none. After
	// an error, some of the data may be there.
	Append(name string, data []byte) error
	// Sync returns once everything appended to the file is on disk.
	Sync(name string) error
	// Truncate cuts a file.
	Truncate(name string, size int64) error
	// Replace writes a whole file: after a crash there is the old one or the new
	// one, and after success the new one. After an error that is ErrUnchanged it is
	// the old one for sure, and can be appended to as before.
	Replace(name string, data []byte) error
}

// ErrUnchanged is of a file that could not be replaced and is what it was.
var ErrUnchanged = errors.New("the file is unchanged")

// Directory is the real disk at a directory, which is its own until Close or the
// end of the process. It is safe for concurrent use.
type Directory struct {
	dir   string
	lock  *os.File
	mu    sync.Mutex
	files map[string]*os.File // open, for appending
}

// OS returns the real disk at a directory, which it makes if there is none. Its
// files are for their owner only. While another process or another Directory has
// it, the error is an ErrHeld that says who.
func OS(dir string) (*Directory, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: make the directory: %w", err)
	}
	held, err := lock(dir)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return &Directory{dir: dir, lock: held, files: map[string]*os.File{}}, nil
}

// Close lets others have the directory. The disk must not be used afterwards.
func (d *Directory) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, f := range d.files {
		errs = append(errs, f.Close())
	}
	clear(d.files)
	return errors.Join(append(errs, d.lock.Close())...) // the lock last
}

func (d *Directory) path(name string) string { return filepath.Join(d.dir, name) }

// file returns the open file of a name, for appending.
func (d *Directory) file(name string) (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.files[name]; f != nil {
		return f, nil
	}
	_, missing := os.Lstat(d.path(name))
	f, err := os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if errors.Is(missing, fs.ErrNotExist) {
		if err := d.syncDirectory(); err != nil { // or a crash loses the name
			return nil, errors.Join(err, f.Close())
		}
	}
	d.files[name] = f
	return f, nil
}

// Read returns a whole file.
func (d *Directory) Read(name string) ([]byte, error) { return os.ReadFile(d.path(name)) }

// Append writes at the end of a file.
func (d *Directory) Append(name string, data []byte) error {
	f, err := d.file(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return err
}

// Sync returns once everything appended to the file is on disk: its bytes and
// its length, but not its times.
func (d *Directory) Sync(name string) error {
	f, err := d.file(name)
	if err != nil {
		return err
	}
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync "+d.path(name), err)
		}
	}
}

// Truncate cuts a file.
func (d *Directory) Truncate(name string, size int64) error {
	return os.Truncate(d.path(name), size)
}

// Replace writes a new file beside the old one and gives it its name.
func (d *Directory) Replace(name string, data []byte) error {
	beside := d.path(name) + ".new"
	if err := writeSynced(beside, data); err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrUnchanged, err), ignoreMissing(os.Remove(beside)))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := os.Rename(beside, d.path(name)); err != nil {
		return err
	}
	if f := d.files[name]; f != nil { // it is the old file's
		delete(d.files, name)
		if err := f.Close(); err != nil {
			return err
		}
	}
	return d.syncDirectory()
}

// syncDirectory makes names of files last.
func (d *Directory) syncDirectory() error {
	dir, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// writeSynced writes a whole file to disk.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// ignoreMissing is an error but for that of a file that is not there.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
