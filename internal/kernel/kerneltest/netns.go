package kerneltest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// netnsEnv holds, in the child that NetNS starts, the name of the test.
	netnsEnv = "RAILHEAD_NETNS_TEST"

	// reportFD is where the child says how the test ended.
	reportFD = 3
)

// What a child reports; an error text follows reportDenied.
const (
	reportPassed  = "passed"
	reportFailed  = "failed"
	reportSkipped = "skipped"
	reportDenied  = "denied: "
)

// NetNS runs fn in a network and a mount namespace of its own, as a root who
// can do there what root can. It needs no privileges: it starts the test
// binary again with only the calling test in it, in a new user namespace
// unless the caller is root already. That child does all that the test does up
// to NetNS once more, then fn, with t as its own; memory is not shared. The
// only link is lo, which is up. Mounts that fn makes are not seen outside.
//
// The test ends as fn does. Where the system does not permit user namespaces,
// it is skipped, or fails if the environment says CI.
func NetNS(t *testing.T, fn func()) {
	t.Helper()
	if os.Getenv(netnsEnv) == t.Name() {
		inChild(t, fn)
		return
	}
	report, output, err := runChild(t)
	denied, isDenied := strings.CutPrefix(report, reportDenied)
	switch {
	case isNotPermitted(err):
		unavailable(t, err.Error())
	case err != nil:
		t.Fatalf("test in a network namespace: %v\n%s", err, output)
	case isDenied:
		unavailable(t, denied)
	case report == reportSkipped:
		t.Skipf("skipped in a network namespace:\n%s", output)
	case report == reportPassed:
		t.Logf("in a network namespace:\n%s", output)
	case report == "":
		t.Fatalf("test in a network namespace ended before it could say how:\n%s", output)
	default:
		t.Fatalf("test in a network namespace %s:\n%s", report, output)
	}
}

// unavailable ends a test that cannot run because there are no namespaces.
func unavailable(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("no network namespace for the test, in CI: %s", why)
	}
	t.Skipf("no network namespace for the test: %s; run it as root, or permit user namespaces "+
		"(sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)", why)
}

// isNotPermitted reports whether err is how clone or the writing of id maps
// says that the system permits no new namespaces.
func isNotPermitted(err error) bool {
	for _, errno := range []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS, unix.EINVAL} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// inChild runs fn in the child and reports how it ended. A child that panics
// or exits reports nothing.
func inChild(t *testing.T, fn func()) {
	t.Helper()
	report := os.NewFile(reportFD, "report")
	returned := false
	t.Cleanup(func() {
		var verdict string
		switch {
		case t.Failed():
			verdict = reportFailed
		case t.Skipped():
			verdict = reportSkipped
		case returned:
			verdict = reportPassed
		}
		_, _ = io.WriteString(report, verdict) // a parent that is gone needs no report
		_ = report.Close()
	})
	if err := prepareNamespaces(); err != nil {
		_, _ = io.WriteString(report, reportDenied+err.Error())
		_ = report.Close()
		t.Skip(err)
	}
	fn()
	returned = true
}

// prepareNamespaces keeps mounts inside and brings up lo. Some systems permit
// the namespaces and then no operation in them; this is where it shows.
func prepareNamespaces() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := setUp("lo"); err != nil {
		return fmt.Errorf("setting lo up: %w", err)
	}
	return nil
}

// runChild runs the calling test in a child and returns what it reported and
// printed.
func runChild(t *testing.T) (report, output string, err error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		return "", "", err
	}
	printed, stdout, err := os.Pipe()
	if err != nil {
		return "", "", err
	}
	defer func() { _ = printed.Close() }()
	verdict, reporter, err := os.Pipe()
	if err != nil {
		_ = stdout.Close()
		return "", "", err
	}
	defer func() { _ = verdict.Close() }()

	child, err := os.StartProcess(exe, childArgs(t), &os.ProcAttr{
		Env:   append(os.Environ(), netnsEnv+"="+t.Name()),
		Files: []*os.File{nil, stdout, stdout, reporter},
		Sys:   namespaces(),
	})
	_, _ = stdout.Close(), reporter.Close() // the child has its own
	if err != nil {
		return "", "", err
	}
	out, outErr := io.ReadAll(printed)
	rep, repErr := io.ReadAll(verdict)
	state, waitErr := child.Wait()
	report = string(rep)
	if report == reportPassed && !state.Success() {
		report = reportFailed // the race detector has the last word
	}
	return report, string(out), errors.Join(outErr, repErr, waitErr)
}

// childArgs returns the command line that runs the calling test only.
func childArgs(t *testing.T) []string {
	t.Helper()
	parts := strings.Split(t.Name(), "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	args := []string{os.Args[0], "-test.run=" + strings.Join(parts, "/"), "-test.count=1", "-test.v"}
	if deadline, ok := t.Deadline(); ok {
		// End before the parent does, so that it can show the stacks.
		args = append(args, "-test.timeout="+max(time.Until(deadline)*9/10, time.Second).String())
	}
	return args
}

// namespaces returns what the child is to be born in.
func namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// NewNetNS returns another network namespace, which has no process in it and
// ends with the file, at the latest with the test. It needs CAP_SYS_ADMIN, so
// it is for tests that run in [NetNS].
func NewNetNS(tb testing.TB) *os.File {
	tb.Helper()
	type result struct {
		file *os.File
		err  error
	}
	made := make(chan result, 1)
	go func() {
		file, err := newNetNS()
		made <- result{file, err}
	}()
	r := <-made
	if r.err != nil {
		tb.Fatalf("new network namespace: %v", r.err)
	}
	tb.Cleanup(func() { _ = r.file.Close() })
	return r.file
}

// newNetNS makes a namespace on its own thread, which goes back to where it
// was or, when it cannot, ends with the goroutine.
func newNetNS() (*os.File, error) {
	runtime.LockOSThread()
	const current = "/proc/thread-self/ns/net"
	before, err := os.Open(current)
	if err != nil {
		return nil, err
	}
	defer func() { _ = before.Close() }()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("unshare: %w", err)
	}
	file, err := os.Open(current)
	if err != nil {
		return nil, err
	}
	if err := unix.Setns(int(before.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, errors.Join(fmt.Errorf("setns: %w", err), file.Close())
	}
	runtime.UnlockOSThread()
	return file, nil
}
