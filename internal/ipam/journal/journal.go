package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
)

// Damage is what was found wrong with a file.
type Damage int

const (
	// DamageNone is a whole file, or none.
	DamageNone Damage = iota
	// DamageTail is a last record that was not written to its end. It was never
	// synced, so nobody was told of it; it is cut off.
	DamageTail
	// DamageCorrupt is something wrong before the end. Records after it are lost,
	// and they may have been synced.
	DamageCorrupt
)

// String returns the damage in words.
func (d Damage) String() string {
	switch d {
	case DamageNone:
		return "none"
	case DamageTail:
		return "torn tail"
	default:
		return "corrupt"
	}
}

// ErrBroken is of a journal whose file cannot be trusted any more. Compact
// mends it.
var ErrBroken = errors.New("journal is broken")

// Journal is a file of records. It is safe for concurrent use.
type Journal[R any] struct {
	disk Disk
	name string

	mu       sync.Mutex
	line     *writer   // of one record
	idle     sync.Cond // no Sync is under way
	syncing  bool
	size     int64 // of the file
	appended int64 // bytes, ever
	synced   int64 // how far of them
	broken   error
}

// Open reads a journal: its records up to the first damage. A torn tail is cut
// off. With a corrupt file, or when cutting or syncing fails, the journal is
// broken until it is compacted. The error is of reading alone.
func Open[R any](d Disk, name string) (*Journal[R], []R, Damage, error) {
	data, err := d.Read(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, DamageNone, fmt.Errorf("journal %s: read: %w", name, err)
	}
	all, intact := records[R](data)
	found := damage(data[intact:])
	j := &Journal[R]{disk: d, name: name, line: newWriter(), size: int64(intact)}
	j.idle.L = &j.mu
	switch {
	case found == DamageCorrupt:
		j.broken = fmt.Errorf("%w: %s is corrupt at byte %d", ErrBroken, name, intact)
	case len(data) > 0:
		j.broken = j.settle(found)
	}
	return j, all, found, nil
}

// settle makes what was read last: the run before may not have synced it.
func (j *Journal[R]) settle(found Damage) error {
	if found == DamageTail {
		if err := j.disk.Truncate(j.name, j.size); err != nil {
			return fmt.Errorf("%w: cut the tail off %s: %w", ErrBroken, j.name, err)
		}
	}
	if err := j.disk.Sync(j.name); err != nil {
		return fmt.Errorf("%w: sync %s: %w", ErrBroken, j.name, err)
	}
	return nil
}

// Append writes a record and returns the position to sync to. After an error
// the record is not in the journal: what was half written is cut off, or the
// journal is broken.
func (j *Journal[R]) Append(r R) (position int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return 0, j.broken
	}
	j.line.frames.Reset()
	if err := j.line.write(&r); err != nil {
		return 0, err
	}
	line := j.line.frames.Bytes()
	if err := j.disk.Append(j.name, line); err != nil {
		if cut := j.disk.Truncate(j.name, j.size); cut != nil && !errors.Is(cut, fs.ErrNotExist) {
			j.broken = fmt.Errorf("%w: cut %s to %d bytes: %w", ErrBroken, j.name, j.size, cut)
		}
		return 0, fmt.Errorf("journal %s: append: %w", j.name, err)
	}
	j.size += int64(len(line))
	j.appended += int64(len(line))
	return j.appended, nil
}

// Sync returns once everything up to a position is on disk. Callers share:
// while one syncs, the others wait, and one of these then syncs for all.
func (j *Journal[R]) Sync(position int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.syncing && j.synced < position {
		j.idle.Wait()
	}
	if j.synced >= position {
		return nil
	}
	if j.broken != nil {
		return j.broken
	}
	j.syncNow()
	return j.broken
}

// syncNow syncs all that is appended, without the lock while the disk works.
func (j *Journal[R]) syncNow() {
	end := j.appended
	j.syncing = true
	err := j.syncUnlocked()
	j.syncing = false
	if err != nil {
		// The kernel may have dropped the pages that it could not write, and say
		// nothing the next time.
		j.broken = fmt.Errorf("%w: sync %s: %w", ErrBroken, j.name, err)
	} else {
		j.synced = end
	}
	j.idle.Broadcast()
}

func (j *Journal[R]) syncUnlocked() error {
	j.mu.Unlock()
	defer j.mu.Lock()
	return j.disk.Sync(j.name)
}

// Compact replaces all records by some that say the same in fewer words, and
// mends a broken journal. Everything appended counts as synced then, so the
// caller lets nobody append while it makes the records. After an error that is
// ErrUnchanged the journal is what it was, after any other it is broken: the disk
// may have the old file or the new one.
func (j *Journal[R]) Compact(all []R) error {
	whole := newWriter()
	for i := range all {
		if err := whole.write(&all[i]); err != nil {
			return err
		}
	}
	data := whole.frames.Bytes()
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.syncing {
		j.idle.Wait()
	}
	if err := j.disk.Replace(j.name, data); errors.Is(err, ErrUnchanged) {
		return fmt.Errorf("journal %s: replace: %w", j.name, err)
	} else if err != nil {
		j.broken = fmt.Errorf("%w: replace %s: %w", ErrBroken, j.name, err)
		return j.broken
	}
	j.size, j.synced, j.broken = int64(len(data)), j.appended, nil
	return nil
}

// Size returns the size of the file in bytes.
func (j *Journal[R]) Size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}
