package attribution

import (
	"sync"

	"railhead/internal/kernel/sysfs"
)

// process is what is worth remembering of a process, or of one of its threads.
type process struct {
	start uint64 // in clock ticks after boot; tells it from an earlier one of the same number
	group int    // number of the process that a thread belongs to
	pod   string // UID; empty where it is of no pod
}

// processesKept bounds what is remembered of processes: the ones that were
// asked for last, up to twice as many as this.
const processesKept = 4096

// processes remembers to which pods processes belong. It is safe for
// concurrent use.
type processes struct {
	fs sysfs.FS

	mu         sync.Mutex
	known, old map[int]process // old ones are dropped when there are enough new
}

// of returns a process, by its number or that of a thread. What is remembered
// is held against the start time each time. A process of the host is not
// remembered: the first of a container begins as one, until its runtime moves
// it. The error is os.ErrNotExist where the process has ended. No privilege is
// needed unless proc hides processes.
func (p *processes) of(pid int) (process, error) {
	start, err := p.fs.StartTime(pid)
	if err != nil {
		p.forget(pid)
		return process{}, err
	}
	if known, ok := p.get(pid); ok && known.start == start {
		return known, nil
	}
	found, err := readProcess(p.fs, pid)
	if err != nil {
		return process{}, err
	}
	found.start = start
	if found.pod != "" {
		p.put(pid, found)
	}
	return found, nil
}

// readProcess reads all of a process but its start time.
func readProcess(fs sysfs.FS, pid int) (process, error) {
	group, err := fs.ThreadGroup(pid)
	if err != nil {
		return process{}, err
	}
	groups, err := fs.Cgroups(pid)
	return process{group: group, pod: podOf(groups)}, err
}

func (p *processes) get(pid int) (process, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found, ok := p.known[pid]; ok {
		return found, true
	}
	found, ok := p.old[pid]
	if ok {
		delete(p.old, pid)
		p.keep(pid, found)
	}
	return found, ok
}

func (p *processes) put(pid int, found process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.old, pid)
	p.keep(pid, found)
}

// keep is called with the lock held.
func (p *processes) keep(pid int, found process) {
	if p.known == nil || len(p.known) >= processesKept {
		p.known, p.old = map[int]process{}, p.known
	}
	p.known[pid] = found
}

func (p *processes) forget(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, pid)
	delete(p.old, pid)
}
