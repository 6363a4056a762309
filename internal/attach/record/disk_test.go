package record

import (
	"io/fs"
	"sync"
	"syscall"
	"testing/fstest"

	"railhead/internal/ipam/journal"
)

// disk is a directory in memory of which operations fail, and which forgets what
// was not synced when the machine stops. It is safe for concurrent use.
type disk struct {
	mu     sync.Mutex
	data   map[string][]byte
	synced map[string]int
	ops    int  // that write
	fail   int  // the number of the first one that fails; 0: none does
	more   int  // how many after it fail, too
	half   bool // an append that fails has written half
	full   bool // all that need room fail; a file that is replaced stays as it is
	syncs  int
}

func newDisk() *disk { return &disk{data: map[string][]byte{}, synced: map[string]int{}} }

// holding is a disk with a file that is synced.
func holding(data []byte) *disk {
	d := newDisk()
	d.data[File] = append([]byte(nil), data...)
	d.synced[File] = len(data)
	return d
}

func (d *disk) step() error {
	d.ops++
	if d.fail > 0 && d.ops >= d.fail && d.ops <= d.fail+d.more {
		return syscall.EIO
	}
	return nil
}

func (d *disk) Read(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	data, ok := d.data[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return append([]byte(nil), data...), nil
}

func (d *disk) Append(name string, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.step()
	if d.full {
		err = syscall.ENOSPC
	}
	if err != nil && d.half {
		data = data[:len(data)/2]
	} else if err != nil {
		return err
	}
	d.data[name] = append(d.data[name], data...)
	return err
}

func (d *disk) Sync(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	d.syncs++
	d.synced[name] = len(d.data[name])
	return nil
}

func (d *disk) Truncate(name string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	d.data[name] = d.data[name][:size]
	d.synced[name] = min(d.synced[name], int(size))
	return nil
}

func (d *disk) Replace(name string, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return journal.ErrUnchanged
	}
	if err := d.step(); err != nil {
		return err
	}
	d.data[name] = append([]byte(nil), data...)
	d.synced[name] = len(data)
	return nil
}

// crash keeps what was synced, and so many bytes more.
func (d *disk) crash(more int) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	data := d.data[File]
	return holding(data[:min(d.synced[File]+more, len(data))])
}

func (d *disk) setFull(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

func (d *disk) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.data[File])
}

var _ journal.Disk = (*disk)(nil)

// filesOf is how another process sees a disk now.
func filesOf(d *disk) fs.FS {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := fstest.MapFS{}
	for name, data := range d.data {
		files[name] = &fstest.MapFile{Data: append([]byte(nil), data...)}
	}
	return files
}
