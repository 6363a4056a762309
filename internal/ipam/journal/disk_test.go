package journal_test

import (
	"io/fs"
	"syscall"

	"railhead/internal/ipam/journal"
)

// disk is a directory in memory of which an operation fails, or after which
// the machine stops.
type disk struct {
	data   map[string][]byte
	synced map[string]int // how much of it is there after a crash
	ops    int
	fail   int // the number of the operation that fails; 0: none does
	half   bool
	more   int // how many after it fail, too
}

func newDisk() *disk { return &disk{data: map[string][]byte{}, synced: map[string]int{}} }

func (d *disk) step() error {
	d.ops++
	if d.fail > 0 && d.ops >= d.fail && d.ops <= d.fail+d.more {
		return syscall.ENOSPC
	}
	return nil
}

func (d *disk) Read(name string) ([]byte, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	data, ok := d.data[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return append([]byte(nil), data...), nil
}

func (d *disk) Append(name string, data []byte) error {
	err := d.step()
	if err != nil && d.half {
		data = data[:len(data)/2]
	} else if err != nil {
		return err
	}
	d.data[name] = append(d.data[name], data...)
	return err
}

func (d *disk) Sync(name string) error {
	if err := d.step(); err != nil {
		return err
	}
	d.synced[name] = len(d.data[name])
	return nil
}

func (d *disk) Truncate(name string, size int64) error {
	if err := d.step(); err != nil {
		return err
	}
	d.data[name] = d.data[name][:size]
	d.synced[name] = min(d.synced[name], int(size))
	return nil
}

func (d *disk) Replace(name string, data []byte) error {
	if err := d.step(); err != nil {
		return err
	}
	d.data[name] = append([]byte(nil), data...)
	d.synced[name] = len(data)
	return nil
}

// crash keeps what was synced, and so many bytes more.
func (d *disk) crash(name string, more int) *disk {
	after := newDisk()
	if data, ok := d.data[name]; ok {
		after.data[name] = append([]byte(nil), data[:min(d.synced[name]+more, len(data))]...)
	}
	return after
}

var _ journal.Disk = (*disk)(nil)
