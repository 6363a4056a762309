package sysfs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Cgroup is a place of a process in a hierarchy of control groups.
type Cgroup struct {
	Hierarchy   int      // 0 for cgroup v2
	Controllers []string // empty for cgroup v2; "name=systemd" for a hierarchy without controllers
	Path        string   // from the root of the reader's cgroup namespace; may begin with /..
}

// processMax bounds the files of a process that are read here.
const processMax = 64 << 10

// Cgroups returns the places of a process or thread in the hierarchies of
// control groups, /proc/PID/cgroup.
func (fs FS) Cgroups(pid int) ([]Cgroup, error) {
	return processFile(fs, pid, "cgroup", parseCgroups)
}

// ThreadGroup returns the number of the process that a thread belongs to, the
// Tgid of /proc/PID/status; of a process, its own.
func (fs FS) ThreadGroup(pid int) (int, error) {
	return processFile(fs, pid, "status", parseTgid)
}

// StartTime returns when a process or thread was started, in clock ticks after
// boot, from /proc/PID/stat. With its number it tells it from all others.
func (fs FS) StartTime(pid int) (uint64, error) {
	return processFile(fs, pid, "stat", parseStartTime)
}

// processFile reads a file of a process. A process that ends while it is read
// is os.ErrNotExist as one that has ended before.
func processFile[T any](fs FS, pid int, name string, parse func(string) (T, error)) (T, error) {
	var none T
	file := fs.Path("proc", strconv.Itoa(pid), name)
	b, err := readRegular(file, processMax)
	if errors.Is(err, unix.ESRCH) {
		return none, &os.PathError{Op: "read", Path: file, Err: goneError{unix.ESRCH}}
	}
	if err != nil {
		return none, err
	}
	v, err := parse(string(b))
	if err != nil {
		return none, fmt.Errorf("%s: %w", file, err)
	}
	return v, nil
}

// parseCgroups parses lines HIERARCHY:CONTROLLER,…:PATH. Colons in a path are
// its own.
func parseCgroups(text string) ([]Cgroup, error) {
	var groups []Cgroup
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		number, rest, _ := strings.Cut(line, ":")
		controllers, path, ok := strings.Cut(rest, ":")
		hierarchy, isNumber := parseIndex(number)
		if !ok || !isNumber || !strings.HasPrefix(path, "/") {
			return nil, wants(line, `a place such as "0::/kubepods.slice"`)
		}
		g := Cgroup{Hierarchy: hierarchy, Path: path}
		if controllers != "" {
			g.Controllers = strings.Split(controllers, ",")
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func parseTgid(text string) (int, error) {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(line, "Tgid:")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		tgid, ok := parseIndex(value)
		if !ok || tgid == 0 {
			return 0, wants(value, "the number of a process as Tgid")
		}
		return tgid, nil
	}
	return 0, errors.New("no line Tgid, want the number of the process")
}

// parseStartTime takes the field starttime, the 22nd, of a line whose second
// field is the command in parentheses, which may hold any of them.
func parseStartTime(text string) (uint64, error) {
	const after = 22 - 3 // of the fields after the command
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) <= after {
		return 0, fmt.Errorf("%d fields after the command, want at least %d", len(fields), after+1)
	}
	ticks, err := strconv.ParseUint(fields[after], 10, 64)
	if err != nil {
		return 0, wants(fields[after], "a start time in clock ticks")
	}
	return ticks, nil
}
