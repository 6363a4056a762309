package netns

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Found is a network namespace that List found.
type Found struct {
	ID   ID     `json:"id"`
	Path string `json:"path"`          // opens it: in run/netns if it has a name there, else of process PID
	PID  int    `json:"pid,omitempty"` // lowest of the processes in it; 0 if there are none
}

// List returns the network namespaces other than ours that processes are in,
// or that have a name in run/netns beside proc, where `ip netns` and container
// runtimes keep them. Proc is where a procfs is mounted, /proc or the host's,
// in which the caller must itself be visible. The result is ordered by ID.
//
// Nothing is opened and nothing kept alive, so a namespace may be gone before
// its path is used. Namespaces that only a single thread, a socket or a mount
// elsewhere keeps alive are not found.
//
// Processes that the caller may not trace (see [Open]) are left out, and a
// [*DeniedError], which is fs.ErrPermission and returned together with all that
// was found, says which: so whoever is not privileged gets both. Processes that
// end meanwhile are left out silently.
func List(proc string) ([]Found, error) {
	own, err := Stat(filepath.Join(proc, "thread-self/ns/net"))
	if err != nil {
		return nil, fmt.Errorf("our own network namespace: %w", err)
	}
	f := finder{own: own, found: make(map[ID]Found)}
	err = errors.Join(
		f.names(filepath.Join(proc, "../run/netns")),
		f.processes(proc),
	)
	list := make([]Found, 0, len(f.found))
	for _, ns := range f.found {
		list = append(list, ns)
	}
	slices.SortFunc(list, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.ID.Dev, b.ID.Dev), cmp.Compare(a.ID.Ino, b.ID.Ino))
	})
	return list, err
}

// DeniedError says of which processes the caller may not know the namespace.
type DeniedError struct {
	PIDs []int // in order
	Of   int   // so many processes there are
}

func (e *DeniedError) Error() string {
	const few = 5
	text := strings.Trim(fmt.Sprint(e.PIDs[:min(few, len(e.PIDs))]), "[]")
	if len(e.PIDs) > few {
		text += " and others"
	}
	return fmt.Sprintf("network namespaces of %d of %d processes (%s), which needs CAP_SYS_PTRACE: %v",
		len(e.PIDs), e.Of, text, fs.ErrPermission)
}

// Unwrap returns fs.ErrPermission.
func (e *DeniedError) Unwrap() error { return fs.ErrPermission }

// finder collects namespaces.
type finder struct {
	own   ID
	found map[ID]Found
}

// add adds a namespace unless it is ours, or the process of a known one.
func (f *finder) add(ns Found) {
	if ns.ID == f.own {
		return
	}
	known, ok := f.found[ns.ID]
	if !ok {
		f.found[ns.ID] = ns
		return
	}
	if known.PID == 0 {
		known.PID = ns.PID
		f.found[ns.ID] = known
	}
}

// names collects the namespaces that have a name in dir, if it is there.
func (f *finder) names(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("named network namespaces: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		// Without the mount, which may have been made where we do not see it,
		// the name is that of an empty file in another file system.
		if id, err := Stat(path); err == nil && id.Dev == f.own.Dev {
			f.add(Found{ID: id, Path: path})
		}
	}
	return nil
}

// processes collects the namespaces of processes.
func (f *finder) processes(proc string) error {
	pids, err := processes(proc)
	if err != nil {
		return fmt.Errorf("network namespaces of processes: %w", err)
	}
	denied := &DeniedError{Of: len(pids)}
	for _, pid := range pids {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		path := filepath.Join(dir, "ns/net")
		id, err := Stat(path)
		switch {
		case err == nil:
			f.add(Found{ID: id, Path: path, PID: pid})
		case errors.Is(err, fs.ErrPermission) && exists(dir):
			denied.PIDs = append(denied.PIDs, pid)
		}
	}
	if len(denied.PIDs) > 0 {
		return denied
	}
	return nil
}

// processes returns the numbers of the processes in a procfs, in order.
func processes(proc string) ([]int, error) {
	entries, err := os.ReadDir(proc)
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, err
}

// Stat returns the identity of the namespace at a path without opening it.
func Stat(path string) (ID, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return ID{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return ID{Dev: st.Dev, Ino: st.Ino}, nil
}

// exists tells a process that may not be looked into from one that has ended:
// /proc answers for the namespaces of both that it is not permitted.
func exists(dir string) bool {
	_, err := os.Lstat(dir)
	return err == nil
}
