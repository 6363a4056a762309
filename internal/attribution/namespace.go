package attribution

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"railhead/internal/kernel/netns"
)

// place is a network namespace that holds devices, and the pod that is in it.
// It is replaced, never changed, once it is published.
type place struct {
	pod   *Pod   // with its UID alone; nil while no process of a pod is found in it
	pid   int    // of the pod's oldest process in it
	start uint64 // when that process was started
	path  string // leads to the namespace of that process

	pause, left int // of one without a pod: passes from one search to the next, and how many are left
}

// pauseMost is how many passes a namespace without a pod rests at most before
// it is searched for again. The kubelet has no process in the namespace of a
// pod before all its networks are attached.
const pauseMost = 12

// stands tells whether the pod is still in the namespace: the kernel gives the
// numbers of namespaces and processes to others when they end.
func (p *place) stands(id netns.ID, known *processes) bool {
	if p.pod == nil {
		return false
	}
	now, err := netns.Stat(p.path)
	if err != nil || now != id {
		return false
	}
	process, err := known.of(p.pid)
	return err == nil && process.pod == p.pod.UID
}

// rest returns the place of a namespace in which no pod was found, p being
// what it was before, which may be nil.
func (p *place) rest() *place {
	pause := 1
	if p != nil && p.pod == nil {
		pause = min(2*p.pause, pauseMost)
	}
	return &place{pause: pause, left: pause}
}

// search looks through all processes once for those in the wanted namespaces.
// Of those of pods it takes the oldest, which is the pod's sandbox and not a
// debugger's that went in later. What was found comes with the error, which is
// fs.ErrPermission where processes may not be looked into.
func search(known *processes, wanted map[netns.ID]bool) (map[netns.ID]*place, error) {
	found := map[netns.ID]*place{}
	dir := known.fs.Path("proc")
	pids, err := pidsOf(dir)
	errs := []error{err}
	denied := 0
	for _, pid := range pids {
		path := filepath.Join(dir, strconv.Itoa(pid), "ns/net")
		id, err := netns.Stat(path)
		if errors.Is(err, fs.ErrPermission) && exists(filepath.Join(dir, strconv.Itoa(pid))) {
			denied++
		}
		if err != nil || !wanted[id] {
			continue
		}
		process, err := known.of(pid)
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && process.pod == "":
		case err != nil:
			errs = append(errs, err)
		case found[id] == nil || process.start < found[id].start:
			found[id] = &place{pod: unknownPod(process.pod), pid: pid, start: process.start, path: path}
		}
	}
	if denied > 0 {
		errs = append(errs, fmt.Errorf("network namespaces of %d of %d processes, which needs CAP_SYS_PTRACE: %w",
			denied, len(pids), fs.ErrPermission))
	}
	return found, errors.Join(errs...)
}

// pidsOf returns the numbers of the processes in a procfs.
func pidsOf(proc string) ([]int, error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // it was not written to
	names, err := dir.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// exists tells a process that may not be looked into from one that has ended:
// /proc answers for the namespaces of both that it is not permitted.
func exists(dir string) bool {
	_, err := os.Lstat(dir)
	return err == nil
}
