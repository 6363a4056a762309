package modeltest

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"syscall"
)

// A disk is one directory of a machine. What was not synced may be lost or torn
// when its cache is lost.
type disk struct {
	w     *world
	files map[string]*file
	full  bool
}

type file struct {
	data    []byte
	durable []byte // what is there for sure after a loss of the cache
}

func newDisk(w *world) *disk { return &disk{w: w, files: map[string]*file{}} }

var errIO = &fs.PathError{Op: "io", Path: "journal", Err: syscall.EIO}

// step is false for a process that was killed.
func (d *disk) step(what string) bool { return d.w.halt(point{what: "disk " + what, alone: true}) }

func (d *disk) broken(percentTenth int) bool {
	if d.w.calm || d.w.rng.IntN(1000) >= percentTenth {
		return false
	}
	d.w.seen("disk I/O error")
	return true
}

func (d *disk) Read(name string) ([]byte, error) {
	if !d.step("read") {
		return nil, errIO
	}
	f := d.files[name]
	if f == nil {
		return nil, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
	}
	if d.broken(5) {
		return nil, errIO
	}
	return slices.Clone(f.data), nil
}

func (d *disk) open(name string) *file {
	f := d.files[name]
	if f == nil {
		f = &file{}
		d.files[name] = f
	}
	return f
}

func (d *disk) Append(name string, data []byte) error {
	if !d.step("append") {
		return errIO
	}
	f := d.open(name)
	if d.full {
		f.data = append(f.data, data[:d.w.rng.IntN(len(data)+1)]...)
		d.w.seen("disk full")
		return &fs.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
	}
	if d.broken(5) {
		f.data = append(f.data, data[:d.w.rng.IntN(len(data)+1)]...)
		return errIO
	}
	if d.w.planted.lostAppend && d.w.rarely(4) {
		return nil
	}
	f.data = append(f.data, data...)
	return nil
}

func (d *disk) Sync(name string) error {
	if !d.step("sync") {
		return errIO
	}
	f := d.files[name]
	if f == nil {
		return fmt.Errorf("sync %s: %w", name, fs.ErrNotExist)
	}
	if d.w.planted.lyingDisk {
		return nil
	}
	if d.broken(5) {
		d.lose(name) // as Linux does: pages that could not be written are clean afterwards
		return errIO
	}
	f.durable = slices.Clone(f.data)
	return nil
}

func (d *disk) Truncate(name string, size int64) error {
	if !d.step("truncate") {
		return errIO
	}
	f := d.files[name]
	if f == nil {
		return fmt.Errorf("truncate %s: %w", name, fs.ErrNotExist)
	}
	if d.broken(20) {
		return errIO
	}
	f.data = append(slices.Clone(f.data[:min(size, int64(len(f.data)))]), make([]byte, max(0, size-int64(len(f.data))))...)
	return nil
}

func (d *disk) Replace(name string, data []byte) error {
	if !d.step("replace") {
		return errIO
	}
	if d.full && len(data) > 0 && d.w.chance(70) {
		d.w.seen("disk full")
		return &fs.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
	}
	if d.broken(5) {
		if d.w.chance(50) {
			*d.open(name) = file{data: slices.Clone(data), durable: slices.Clone(data)}
		}
		return errIO
	}
	*d.open(name) = file{data: slices.Clone(data), durable: slices.Clone(data)}
	return nil
}

// lose drops what of a file was not synced, or tears it at some byte.
func (d *disk) lose(name string) {
	f := d.files[name]
	keep := 0
	for keep < len(f.data) && keep < len(f.durable) && f.data[keep] == f.durable[keep] {
		keep++
	}
	if keep == len(f.data) && keep == len(f.durable) {
		return
	}
	if len(f.data) <= keep { // a truncation was not synced
		if d.w.chance(50) {
			f.data = slices.Clone(f.durable)
		}
		return
	}
	if keep < len(f.durable) { // cut, and written anew
		keep = max(keep, 0)
		if d.w.chance(50) {
			f.data = slices.Clone(f.durable)
			return
		}
	}
	cut := keep + d.w.rng.IntN(len(f.data)-keep+1)
	torn := slices.Clone(f.data[:cut])
	if d.w.chance(30) { // the size was written, the pages were not
		torn = append(torn, make([]byte, len(f.data)-cut)...)
	}
	f.data = torn
	f.durable = slices.Clone(torn)
}

// loseCache is a crash of what is below the file system.
func (d *disk) loseCache() {
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		d.lose(name)
	}
}

// corrupt changes a byte somewhere before the last record of what was synced.
// The last one is left out: changed, it looks like one that was torn, and is cut
// off as such. The file has nothing that could tell, so this the product does not
// withstand: a pod's address may be given again until Occupied names it.
func (d *disk) corrupt() bool {
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[name]
		if last := bytes.LastIndexByte(bytes.TrimRight(f.data, "\n"), '\n'); last > 0 {
			f.data = slices.Clone(f.data)
			f.data[d.w.rng.IntN(last)] ^= byte(1 + d.w.rng.IntN(255))
			f.durable = slices.Clone(f.data)
			return true
		}
	}
	return false
}
