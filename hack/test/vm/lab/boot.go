//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"railhead/hack/program"
	"railhead/hack/test/vm/plan"
)

// Limits of one boot. The tests' own limit is shorter, so that a hanging test prints its goroutines before the machine
// is ended.
const (
	bootTimeout  = 5 * time.Minute
	suiteTimeout = 12 * time.Minute
)

// Selection is a test binary and the tests of it that a boot runs.
type Selection struct {
	Binary
	// Run are the names of the tests.
	Run []string
}

// Boot is what one boot of a machine did.
type Boot struct {
	// Kernel is the release that ran.
	Kernel string
	// BootSeconds is the guest's uptime when the first suite started; Seconds is the whole run as the host saw it.
	BootSeconds, Seconds float64
	// Suites are the selections' results, in their order.
	Suites []SuiteResult
	// Trouble is what went wrong beside the tests: a dead or hanging machine, a warning in the kernel's log.
	Trouble []string
	// Console is everything the guest's kernel and pid 1 printed.
	Console string
}

// SuiteResult is what one test binary did.
type SuiteResult struct {
	Package string
	Tests   []TestResult
	// Outside is what the binary printed outside of its tests: a panic, for example.
	Outside string
	// Exit is its exit status, or -1 when it did not end by itself.
	Exit int
}

// Boot boots a machine that the lab was prepared for, runs the selected tests in it and returns what happened. The
// boot's files, shared with the guest, are written into dir. With a terminal, the machine ends in a shell on it.
// Failing tests and a dying guest are results; an error means that the boot could not be tried.
func (l *Lab) Boot(ctx context.Context, m Machine, selections []Selection, dir string, terminal *os.File) (*Boot, error) {
	if err := l.tried[m.need()]; err != nil {
		return nil, err
	}
	share := filepath.Join(dir, "share")
	if err := l.fillShare(ctx, m, selections, share, terminal != nil); err != nil {
		return nil, err
	}
	kernel := l.kernels[m.Kernel]
	init, initramfs := filepath.Join(dir, "init"), filepath.Join(dir, "initramfs")
	if err := buildProgram(ctx, "railhead/hack/test/vm/guestinit", init); err != nil {
		return nil, err
	}
	if err := writeInitramfs(initramfs, init, kernel.boot); err != nil {
		return nil, fmt.Errorf("initramfs: %w", err)
	}
	args := m.qemuArgs(bootFiles{kernel.image, initramfs, l.userland, kernel.modules, share}, hostTSC())
	limit := bootTimeout + time.Duration(len(selections))*suiteTimeout
	if terminal != nil {
		limit = 24 * time.Hour
	}
	start := time.Now()
	console, trouble, err := l.runQEMU(ctx, args, limit, terminal)
	if err != nil {
		return nil, err
	}
	b := &Boot{Kernel: kernel.release, Seconds: time.Since(start).Seconds(), Console: string(console)}
	if err := os.WriteFile(filepath.Join(dir, "console.log"), console, 0o644); err != nil {
		return nil, err
	}
	b.Trouble = append(trouble, kernelTrouble(console)...)
	return b, b.readResults(ctx, selections, share)
}

// runQEMU runs QEMU to its end and returns the guest's console and what is wrong with how it ended.
func (l *Lab) runQEMU(ctx context.Context, args []string, limit time.Duration, terminal *os.File) ([]byte, []string, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var console, stderr bytes.Buffer
	cmd := l.tools.command(timed, "usr/bin/qemu-system-x86_64", append(l.firmware(), args...)...)
	cmd.Stdout, cmd.Stderr = &console, &stderr
	if terminal != nil {
		cmd.Stdin, cmd.Stdout = terminal, io.MultiWriter(terminal, &console)
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case timed.Err() != nil:
		return console.Bytes(), []string{fmt.Sprintf("the machine did not end within %s and was killed", limit)}, nil
	case err != nil && !errors.As(err, &exit):
		return nil, nil, fmt.Errorf("QEMU: %w", err)
	}
	switch code := cmd.ProcessState.ExitCode(); code {
	case qemuStatus(plan.ExitDone), qemuStatus(plan.ExitBroken):
		return console.Bytes(), nil, nil
	case 0: // the guest rebooted, as it does after a panic
		return console.Bytes(), []string{"the machine died"}, nil
	default:
		return nil, nil, fmt.Errorf("QEMU: %w: %s", err, program.LastLines(stderr.String(), 20))
	}
}

// qemuStatus is QEMU's exit status for the guest's.
func qemuStatus(guest byte) int { return 2*int(guest) + 1 }

// firmware tells QEMU where its files are in the tools' tree.
func (l *Lab) firmware() []string {
	return []string{"-L", l.tools.at("usr/share/qemu"), "-L", l.tools.at("usr/share/seabios"), "-L", l.tools.at("usr/lib/ipxe/qemu")}
}

// fillShare writes the plan and all it names into the directory that the guest sees.
func (l *Lab) fillShare(ctx context.Context, m Machine, selections []Selection, share string, shell bool) error {
	p := plan.Plan{Machine: m.Name, Modules: m.Modules, Shell: shell}
	if m.MovableRXE {
		// In place of the kernel's own file: `rdma link add` loads the module by itself, and would find that one.
		const name = "rdma_rxe.ko"
		if err := copyFile(l.movable[m.Kernel], filepath.Join(share, name)); err != nil {
			return err
		}
		p.Files = append(p.Files, plan.File{From: name, To: filepath.Join("/usr/lib/modules", l.kernels[m.Kernel].release, rxeModule)})
	}
	if err := addPrograms(ctx, m, &p, share); err != nil {
		return err
	}
	for i, s := range selections {
		suite := planSuite(i, s)
		if err := copyFile(s.path, filepath.Join(share, suite.Binary)); err != nil {
			return err
		}
		testdata := filepath.Join(s.source, "testdata")
		if err := os.CopyFS(filepath.Join(share, suite.Dir, "testdata"), os.DirFS(testdata)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("testdata of %s: %w", s.Package, err)
		}
		p.Suites = append(p.Suites, suite)
	}
	raw, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return err
	}
	if err := mkdirs(share); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(share, plan.PlanFile), raw, 0o644)
}

// addPrograms builds a machine's programs into the shared directory, from where they go to the guest's path.
func addPrograms(ctx context.Context, m Machine, p *plan.Plan, share string) error {
	for _, pkg := range m.Programs {
		name := path.Base(pkg)
		if err := buildProgram(ctx, pkg, filepath.Join(share, name)); err != nil {
			return err
		}
		p.Files = append(p.Files, plan.File{From: name, To: "/usr/local/bin/" + name})
	}
	return nil
}

// planSuite is how the guest runs selection number i.
func planSuite(i int, s Selection) plan.Suite {
	dir := fmt.Sprintf("suite%d", i)
	return plan.Suite{
		Package: s.Package,
		Dir:     dir,
		Binary:  filepath.Join(dir, filepath.Base(s.path)),
		Output:  filepath.Join(dir, "output"),
		Args: []string{
			"-test.v=test2json", "-test.timeout=" + suiteTimeout.String(),
			"-test.run=^(" + strings.Join(s.Run, "|") + ")$",
		},
	}
}

// readResults reads what the guest left in the shared directory.
func (b *Boot) readResults(ctx context.Context, selections []Selection, share string) error {
	var result plan.Result
	raw, err := os.ReadFile(filepath.Join(share, plan.ResultFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		b.Trouble = append(b.Trouble, "the guest left no result")
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(raw, &result); err != nil {
			return fmt.Errorf("guest's result: %w", err)
		}
	}
	if result.Error != "" {
		b.Trouble = append(b.Trouble, "the guest could not carry out its plan: "+result.Error)
	}
	b.BootSeconds = result.BootSeconds
	for i, s := range selections {
		suite := SuiteResult{Package: s.Package, Exit: -1}
		if i < len(result.Exits) {
			suite.Exit = result.Exits[i]
		}
		printed, err := os.ReadFile(filepath.Join(share, planSuite(i, s).Output))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		convert := goCommand(ctx, "tool", "test2json", "-p", s.Package)
		convert.Stdin = bytes.NewReader(printed)
		events, err := program.Output(convert)
		if err != nil {
			return fmt.Errorf("output of %s: %w", s.Package, err)
		}
		if suite.Tests, suite.Outside, err = parseEvents(bytes.NewReader(events), s.Run); err != nil {
			return fmt.Errorf("output of %s: %w", s.Package, err)
		}
		b.Suites = append(b.Suites, suite)
	}
	return nil
}
