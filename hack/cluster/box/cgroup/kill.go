package cgroup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// killLimit is how long a killed process may take to end. It is far more than any takes.
const killLimit = time.Minute

// Kill kills all processes in the cgroup and below it, and waits until they
// have ended. It refuses to kill the caller.
func (g *Group) Kill() error {
	if err := g.Thaw(); err != nil {
		return err
	}
	deadline := time.Now().Add(killLimit)
	for _, h := range g.Hierarchies {
		if err := killBelow(filepath.Join(h.Dir, g.Path), deadline); err != nil {
			return fmt.Errorf("kill processes of cgroup %s: %w", g.Path, err)
		}
	}
	return nil
}

// Thaw lets processes in the cgroup and below it go on that a container runtime
// has frozen: as long as they are, v1 does not let them be killed.
func (g *Group) Thaw() error {
	for _, h := range g.Hierarchies {
		if !h.has("freezer") {
			continue
		}
		if err := thaw(filepath.Join(h.Dir, g.Path)); err != nil {
			return fmt.Errorf("thaw cgroup %s: %w", g.Path, err)
		}
	}
	return nil
}

func thaw(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("THAWED"), 0); err != nil {
		return ignoreGone(err)
	}
	return eachBelow(dir, thaw)
}

// killBelow kills from the top: the first process of a machine is there, and
// with it the kernel ends all others.
func killBelow(dir string, deadline time.Time) error {
	for more := true; more; {
		var err error
		if more, err = killMembers(dir, deadline); err != nil {
			return err
		}
	}
	return eachBelow(dir, func(child string) error { return killBelow(child, deadline) })
}

// killMembers kills the processes of one cgroup and waits for them. It reports
// whether there were any, because then new ones may have come meanwhile.
func killMembers(dir string, deadline time.Time) (bool, error) {
	pids, err := members(dir)
	if err != nil || len(pids) == 0 {
		return false, err
	}
	handles := open(pids)
	defer closeAll(handles)
	// A number may have been given to another process before it was opened;
	// what is in the cgroup now and open is what we mean.
	pids, err = members(dir)
	if err != nil {
		return false, err
	}
	if slices.Contains(pids, os.Getpid()) {
		return false, errors.New("the caller itself is in it")
	}
	maps.DeleteFunc(handles, func(pid, handle int) bool {
		gone := !slices.Contains(pids, pid)
		if gone {
			_ = unix.Close(handle)
		}
		return gone
	})
	for pid, handle := range handles {
		if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return false, fmt.Errorf("process %d: %w", pid, err)
		}
	}
	for pid, handle := range handles {
		if err := waitEnd(handle, deadline); err != nil {
			return false, fmt.Errorf("process %d: %w", pid, err)
		}
	}
	return true, nil
}

// open returns handles of those processes that still exist.
func open(pids []int) map[int]int {
	handles := map[int]int{}
	for _, pid := range pids {
		if handle, err := unix.PidfdOpen(pid, 0); err == nil {
			handles[pid] = handle
		}
	}
	return handles
}

func closeAll(handles map[int]int) {
	for _, handle := range handles {
		_ = unix.Close(handle)
	}
}

// waitEnd waits until the process behind a pidfd has ended.
func waitEnd(handle int, deadline time.Time) error {
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("has not ended %v after SIGKILL", killLimit)
		}
		poll := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("poll", err)
		}
		if n > 0 {
			return nil
		}
	}
}
