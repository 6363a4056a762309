package sysfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Process is a running process.
type Process struct {
	PID     int
	Command string // /proc/PID/comm: at most 15 bytes
}

// Limit is a resource limit of a process. Infinity stands for "unlimited".
type Limit struct {
	Soft, Hard uint64
}

// Infinity is the value of a limit that does not limit.
const Infinity = ^uint64(0)

// commMax is how much of a command's name the kernel keeps.
const commMax = 15

// Processes returns the processes of the given commands, or all of them if
// none is given, by PID. Of a command longer than the kernel keeps, the
// beginning counts. The PIDs are those of the PID namespace of proc's mount.
func (fs FS) Processes(commands ...string) ([]Process, error) {
	var wanted []string
	for _, c := range commands {
		wanted = append(wanted, c[:min(len(c), commMax)])
	}
	proc, err := fs.openDir(fs.Path("proc"))
	if err != nil {
		return nil, err
	}
	defer proc.close()
	var found []Process
	for _, pid := range proc.numbers() {
		name := strconv.Itoa(pid) + "/comm"
		comm, err := proc.read(name)
		if err != nil {
			proc.fail(name, err)
			continue
		}
		if len(wanted) == 0 || slices.Contains(wanted, string(comm)) {
			found = append(found, Process{PID: pid, Command: string(comm)})
		}
	}
	return found, proc.done()
}

// MemlockLimit returns how many bytes a process may lock in memory, from
// /proc/PID/limits. It bounds the memory regions it can register for RDMA.
func (fs FS) MemlockLimit(pid int) (Limit, error) {
	name := fs.Path("proc", strconv.Itoa(pid), "limits")
	text, err := readAttr(name)
	if err != nil {
		return Limit{}, err
	}
	limit, err := parseMemlock(text)
	if err != nil {
		return Limit{}, fmt.Errorf("%s: %w", name, err)
	}
	return limit, nil
}

// Sysctl returns a sysctl, without its trailing newline, by its name with
// slashes, in which the name of an interface may have dots:
// net/ipv4/conf/eth0.100/rp_filter. Those of net are of the network namespace
// of the calling thread, wherever proc was mounted.
func (fs FS) Sysctl(name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("%w: sysctl %.64q, want a name such as net/ipv4/ip_forward", os.ErrInvalid, name)
	}
	return readAttr(fs.Path("proc/sys", name))
}

// KernelRelease returns the release of the kernel, as uname -r does.
func (fs FS) KernelRelease() (string, error) {
	return fs.Sysctl("kernel/osrelease")
}

// cmdlineMax bounds the kernel command line, which has 4096 bytes at most,
// plus what a boot configuration adds.
const cmdlineMax = 64 << 10

// KernelCommandLine returns the parameters the kernel was booted with, in
// their order, up to the -- after which they are for init. Parameters of
// modules have the module before them: ib_core.netns_mode.
func (fs FS) KernelCommandLine() (Params, error) {
	b, err := readRegular(fs.Path("proc/cmdline"), cmdlineMax)
	if err != nil {
		return nil, err
	}
	return beforeInit(parseParams(string(b))), nil
}

func beforeInit(params Params) Params {
	if i := slices.Index(params, Param{Name: "--"}); i >= 0 {
		return params[:i]
	}
	return params
}

// parseMemlock finds the soft and hard limit in
//
//	Limit                     Soft Limit           Hard Limit           Units
//	Max locked memory         8388608              unlimited            bytes
func parseMemlock(text string) (Limit, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "Max locked memory ")
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			return Limit{}, wants(line, "a soft and a hard limit")
		}
		soft, errSoft := parseLimit(fields[0])
		hard, errHard := parseLimit(fields[1])
		if err := errors.Join(errSoft, errHard); err != nil {
			return Limit{}, err
		}
		return Limit{Soft: soft, Hard: hard}, nil
	}
	return Limit{}, errors.New(`no line "Max locked memory"`)
}

func parseLimit(s string) (uint64, error) {
	if s == "unlimited" {
		return Infinity, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, wants(s, `a number of bytes or "unlimited"`)
	}
	return n, nil
}
