package counters

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/sysfs"
)

// files reads a directory of counters.
type files struct {
	dir    *sysfs.CounterDir
	place  string // of the directory: mlx5_0/ports/1/counters
	wanted []int  // indexes of its files; nil for all
	read   []sysfs.CounterValue
	values []uint64
}

// newFiles reads a directory of a device, or of what is below it.
func newFiles(dir *sysfs.CounterDir, wanted []int, of ...string) *files {
	return &files{
		dir: dir, place: path.Join(append(of, dir.Name)...), wanted: wanted,
		read: make([]sysfs.CounterValue, len(dir.Files)), values: make([]uint64, len(dir.Files)),
	}
}

// ask reads the wanted files that are not spared; the others are absent.
func (f *files) ask(a Access) (names []string, values []uint64, err error) {
	clear(f.read)
	if !a.Spared[f.place] {
		err = f.blame(f.dir.Read(a.FS, f.unspared(a.Spared), f.read))
	}
	for i, v := range f.read {
		f.values[i] = absent
		if v.Present {
			f.values[i] = v.Value
		}
	}
	return f.dir.Files, f.values, err
}

// unspared are the indexes of the wanted files that are asked for; nil for all.
func (f *files) unspared(spared map[string]bool) []int {
	if len(spared) == 0 {
		return f.wanted
	}
	left := []int{}
	for i, name := range f.dir.Files {
		if (f.wanted == nil || slices.Contains(f.wanted, i)) && !spared[path.Join(f.place, name)] {
			left = append(left, i)
		}
	}
	return left
}

// blame makes errors those of single files. Where no file could be read, the
// error is one of the directory: those of all files would say the same.
func (f *files) blame(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || !slices.ContainsFunc(f.read, func(v sysfs.CounterValue) bool { return v.Present }) {
		if ok {
			err = joined.Unwrap()[0]
		}
		if err == nil {
			return nil
		}
		return &ReadError{Source: fromFiles, Question: f.place, Err: err}
	}
	var errs []error
	for _, err := range joined.Unwrap() {
		question := f.place
		if file, ok := errors.AsType[*fs.PathError](err); ok {
			question = path.Join(f.place, path.Base(file.Path))
		}
		errs = append(errs, &ReadError{Source: fromFiles, Question: question, Err: err})
	}
	return errors.Join(errs...)
}

// find returns the directory with a name. The error is that of a driver that
// does not have it.
func find(dirs []*sysfs.CounterDir, name string) (*sysfs.CounterDir, error) {
	for _, d := range dirs {
		if d.Name == name && len(d.Files) > 0 {
			return d, nil
		}
	}
	return nil, fmt.Errorf("counters in %s: %w", name, rdmanl.ErrNotSupported)
}

// portFilesAsker reads those of a port's counters that belong to a tier. They
// cost a command of the firmware each.
type portFilesAsker struct {
	device string
	port   int
	tier   Tier
	files  *files
}

func (p *portFilesAsker) ask(a Access) (names []string, values []uint64, err error) {
	if p.files == nil {
		dirs, err := a.FS.PortCounters(p.device, p.port)
		if err != nil {
			return nil, nil, err
		}
		dir, err := find(dirs, "counters")
		if err != nil {
			return nil, nil, err
		}
		p.files = newFiles(dir, p.wanted(dir.Files), p.device, "ports", strconv.Itoa(p.port))
	}
	return p.files.ask(a)
}

func (p *portFilesAsker) wanted(names []string) []int {
	wanted := []int{}
	for i, name := range names {
		if c := known.find(portFiles, "", name); c != nil && c.tier == p.tier {
			wanted = append(wanted, i)
		}
	}
	return wanted
}

// deviceFilesAsker reads the counters of a whole device, which the kernel asks
// the firmware for at once.
type deviceFilesAsker struct {
	device string
	files  *files
}

func (d *deviceFilesAsker) ask(a Access) (names []string, values []uint64, err error) {
	if d.files == nil {
		dirs, err := a.FS.DeviceCounters(d.device)
		if err != nil {
			return nil, nil, err
		}
		dir, err := find(dirs, "hw_counters")
		if err != nil {
			return nil, nil, err
		}
		d.files = newFiles(dir, nil, d.device)
	}
	return d.files.ask(a)
}

// cmAsker reads what ib_cm counts at a port. Few programs connect by it, so
// of the many functions without a port of their own those that never saw a
// message have none of its series, and nothing of their files is kept.
type cmAsker struct {
	device string
	port   int
	sparse bool // nothing is there before the first message
	dirs   []*files
	names  []string
	values []uint64
}

func (c *cmAsker) ask(a Access) (names []string, values []uint64, err error) {
	if c.names == nil {
		if err := c.list(a.FS); err != nil {
			return nil, nil, err
		}
	}
	c.values = c.values[:0]
	var errs []error
	for _, dir := range c.dirs {
		_, some, failed := dir.ask(a)
		errs = append(errs, failed)
		c.values = append(c.values, some...)
	}
	if c.sparse && !slices.ContainsFunc(c.values, func(v uint64) bool { return v != 0 && v != absent }) {
		c.dirs, c.names, c.values = nil, nil, nil
		return nil, nil, errors.Join(errs...)
	}
	return c.names, c.values, errors.Join(errs...)
}

func (c *cmAsker) list(sys sysfs.FS) error {
	dirs, err := sys.PortCounters(c.device, c.port)
	if err != nil {
		return err
	}
	for _, cm := range cmDirs {
		dir, err := find(dirs, cm.name)
		if err != nil {
			continue
		}
		c.dirs = append(c.dirs, newFiles(dir, nil, c.device, "ports", strconv.Itoa(c.port)))
		for _, file := range dir.Files {
			key := cmKey(dir.Name, file)
			if row := known.find(cmFiles, "", key); row != nil {
				key = row.key // which all ports share
			}
			c.names = append(c.names, key)
		}
	}
	if c.names == nil {
		return fmt.Errorf("counters of ib_cm, which Linux 5.14 brought to this place: %w", rdmanl.ErrNotSupported)
	}
	return nil
}
