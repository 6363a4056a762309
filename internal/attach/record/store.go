package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"railhead/internal/ipam/journal"
)

// File is the name of the records' file in their directory, and Directory where
// that is on a node.
const (
	File      = "attachments.journal"
	Directory = "/var/lib/railhead/attachments"
)

// ErrDisk says that the disk does not take a record.
var ErrDisk = errors.New("the record of attachments cannot be written")

// Store keeps attachments on disk. It is safe for concurrent use.
type Store struct {
	journal *journal.Journal[any] // of written, and lines that stay as they are
	damage  journal.Damage

	mu        sync.Mutex
	memory    *memory
	behind    bool  // the journal lacks something, and must be written anew
	compactAt int64 // size of the journal from which it is written anew
}

// garbage is how many bytes of lines that count no more are left alone.
const garbage = 1 << 20

// Open reads the records and goes on with them. The error is of reading alone: a
// disk that cannot be written refuses attachments later. Damage says whether any
// may be lost.
func Open(disk journal.Disk, name string) (*Store, error) {
	_, lines, damage, err := journal.Open[json.RawMessage](disk, name)
	if err != nil {
		return nil, err
	}
	j, _, _, err := journal.Open[any](disk, name) // to write
	if err != nil {
		return nil, err
	}
	s := &Store{journal: j, damage: damage, memory: newMemory()}
	if damage == journal.DamageCorrupt {
		data, err := disk.Read(name)
		if err != nil {
			return nil, fmt.Errorf("%s: read again, as it is damaged: %w", name, err)
		}
		lines = salvage(data)
	}
	for _, raw := range lines {
		s.memory.apply(raw)
	}
	s.plan()
	if damage == journal.DamageCorrupt {
		s.behind = true
		_ = s.compact() // if it fails, it is tried again before anything is attached
	}
	return s, nil
}

// Damage is what was wrong with the file when it was opened. After
// [journal.DamageCorrupt], lines that were whole are there, and others are lost.
func (s *Store) Damage() journal.Damage { return s.damage }

// Put keeps an attachment under its ContainerID, in place of what was there. It
// may be lost in a crash until sync returns nil, which callers share. After an
// error, which is ErrDisk unless the attachment is no JSON, there is what there
// was before.
func (s *Store) Put(a Attachment) (sync func() error, err error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	a = a.clone()
	a.Newer, a.PlanLost = 0, a.PlanLost && a.Plan == nil
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.memory.lineOf(a)
	position, size, err := s.append(line)
	if err != nil {
		return nil, err
	}
	k := &kept{attachment: a, size: size, plan: line.Plan, planSize: size}
	if line.Planned != 0 {
		k.keepPlan(line.Planned, s.memory.all[a.ContainerID])
	}
	s.memory.set(a.ContainerID, k)
	return s.syncTo(position), nil
}

// Remove forgets an attachment, if there is one. It holds even with ErrDisk, by
// Remove or by sync, which says that a crash may bring the attachment back: an
// agent that starts undoes again what is undone. So a full disk keeps no pod from
// going.
func (s *Store) Remove(containerID string) (sync func() error, err error) {
	nothing := func() error { return nil }
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory.all[containerID] == nil {
		return nothing, nil
	}
	s.memory.remove(containerID)
	position, _, err := s.append(written{Version: version, ID: containerID, Removed: true})
	if err != nil {
		s.behind = true
		return nothing, err
	}
	return s.syncTo(position), nil
}

// append adds a line, and says how long it is. First it catches up where the
// journal lacks something. A journal that only grew too long is appended to even
// if it cannot be written anew.
func (s *Store) append(w written) (position, size int64, err error) {
	if s.behind || s.journal.Size() > s.compactAt {
		if err := s.compact(); err != nil && s.behind {
			return 0, 0, err
		}
	}
	before := s.journal.Size()
	position, err = s.journal.Append(w)
	if errors.Is(err, journal.ErrBroken) { // by an earlier line that nobody waited for
		if err = s.compact(); err == nil {
			before = s.journal.Size()
			position, err = s.journal.Append(w)
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return position, s.journal.Size() - before, nil
}

// compact writes the journal anew from memory.
func (s *Store) compact() error {
	if err := s.journal.Compact(s.memory.lines()); err != nil {
		s.compactAt = s.journal.Size() + garbage
		s.behind = s.behind || !errors.Is(err, journal.ErrUnchanged)
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	s.behind = false
	s.plan()
	return nil
}

// plan says when to write the journal anew: when more than half of it is garbage.
func (s *Store) plan() { s.compactAt = 2*s.memory.live + garbage }

// syncTo waits for the disk.
func (s *Store) syncTo(position int64) func() error {
	return func() error {
		if err := s.journal.Sync(position); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.behind = true
			return fmt.Errorf("%w: %w", ErrDisk, err)
		}
		return nil
	}
}

// Get returns the attachment of a sandbox.
func (s *Store) Get(containerID string) (Attachment, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.memory.all[containerID]
	if k == nil {
		return Attachment{}, false
	}
	return k.attachment.clone(), true
}

// All returns the attachments, the oldest first.
func (s *Store) All() []Attachment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.attachments()
}

// Close writes what the journal lacks. The disk is its owner's to close.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.behind {
		return nil
	}
	return s.compact()
}

// sorted are the attachments, the oldest first.
func (m *memory) sorted() []*kept {
	return slices.SortedFunc(maps.Values(m.all), func(a, b *kept) int {
		return cmp.Or(a.attachment.At.Compare(b.attachment.At), cmp.Compare(a.attachment.ContainerID, b.attachment.ContainerID))
	})
}

func (m *memory) attachments() []Attachment {
	list := make([]Attachment, 0, len(m.all))
	for _, k := range m.sorted() {
		list = append(list, k.attachment.clone())
	}
	return list
}
