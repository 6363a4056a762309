package attachbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/hack/cluster/binaries"
)

// insideEnv says that the test program runs in namespaces of its own.
const insideEnv = "RAILHEAD_ATTACHBENCH_INSIDE"

// TestMain runs the test program once more, in namespaces: plugins and the agent's
// server work in those of their process.
func TestMain(m *testing.M) {
	if os.Getenv(insideEnv) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			fmt.Fprintln(os.Stderr, "making mounts private:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	if os.Geteuid() != 0 {
		os.Exit(m.Run()) // where all say what they need
	}
	if err := runInside(); err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			os.Exit(exit.ExitCode())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runInside() error {
	// Inside nothing can be downloaded.
	if families := wantedFamilies(); families != nil {
		if _, err := binaries.Ensure(context.Background(), os.Stderr, families...); err != nil {
			return err
		}
	}
	runtime.LockOSThread() // with which the other process ends
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM}
	return cmd.Run()
}

func wantedFamilies() []binaries.Family {
	switch {
	case isNightly():
		return []binaries.Family{binaries.CNI, binaries.Multus}
	case os.Getenv("RAILHEAD_API") != "":
		return []binaries.Family{binaries.CNI}
	}
	return nil
}

func isNightly() bool { return os.Getenv("RAILHEAD_NIGHTLY") != "" }

// requireNamespaces skips what needs them.
func requireNamespaces(b *testing.B) {
	b.Helper()
	if os.Getenv(insideEnv) == "" {
		skip(b, "needs network namespaces of its own: run it as root")
	}
}

// requirePlugins returns where the plugins of the CNI project are.
func requirePlugins(b *testing.B) *binaries.Set {
	b.Helper()
	requireNamespaces(b)
	families := wantedFamilies()
	if families == nil {
		b.Skip("needs plugins of the CNI project, which are built as those of clusters are: set RAILHEAD_API=1")
	}
	set, err := binaries.Ensure(b.Context(), os.Stderr, families...)
	if err != nil {
		b.Fatal(err)
	}
	return set
}

// skip skips a benchmark where it cannot run; in CI it has to.
func skip(b *testing.B, reason string) {
	b.Helper()
	if os.Getenv("CI") != "" {
		b.Fatal(reason)
	}
	b.Skip(reason)
}
