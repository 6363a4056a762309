package holder_test

import (
	"io/fs"
	"math/rand/v2"
	"syscall"
)

// disk is a directory in memory that fails by chance, and that forgets what was
// not synced when the machine stops.
type disk struct {
	rng    *rand.Rand
	data   map[string][]byte
	synced map[string]int
	fail   int // of 100 operations
}

func newDisk(rng *rand.Rand) *disk {
	return &disk{rng: rng, data: map[string][]byte{}, synced: map[string]int{}}
}

func (d *disk) step() error {
	if d.rng.IntN(100) < d.fail {
		return syscall.ENOSPC
	}
	return nil
}

func (d *disk) Read(name string) ([]byte, error) {
	data, ok := d.data[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return append([]byte(nil), data...), nil
}

func (d *disk) Append(name string, data []byte) error {
	err := d.step()
	if err != nil {
		data = data[:d.rng.IntN(len(data))]
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

// crash keeps what was synced, and by chance some of what came after.
func (d *disk) crash() {
	for name, data := range d.data {
		d.data[name] = data[:d.synced[name]+d.rng.IntN(len(data)-d.synced[name]+1)]
	}
}
