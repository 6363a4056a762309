package sysfs

import "path/filepath"

// before is called before anything is read. It is behind a pointer so that FS
// can be compared.
type before struct{ read func(name string) }

// Before returns an FS that calls f before it opens, lists or follows anything
// in sysfs, with its path, and once more before it asks whether a device is
// still the one that it opened. So a test takes a device away, or brings it
// back, at any point of a read.
func (fs FS) Before(f func(name string)) FS {
	fs.before = &before{read: f}
	return fs
}

func (b *before) call(name string) {
	if b != nil {
		b.read(name)
	}
}

// callIn is call for a file in a directory, whose path is put together only
// when somebody wants it.
func (b *before) callIn(d *dir, name string) {
	if b != nil {
		b.read(filepath.Join(d.path, name))
	}
}
