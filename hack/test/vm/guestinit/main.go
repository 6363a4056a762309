//go:build linux

// Command guestinit is pid 1 of the lab's virtual machines. From the initramfs it loads the modules that the disks
// need, puts the root file system together, carries out the plan that the host left in the shared directory, writes
// the result beside it and ends the machine. It knows nothing of the tests: it starts programs and keeps their output.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"railhead/hack/test/vm/plan"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guestinit: runs as pid 1 of a lab machine only")
		os.Exit(2)
	}
	status := plan.ExitDone
	if err := boot(context.Background()); err != nil {
		fmt.Println("guestinit:", err)
		status = plan.ExitBroken
	}
	end(status)
}

// boot brings the machine up and carries out its plan.
func boot(ctx context.Context) error {
	if err := assembleRoot(); err != nil {
		return fmt.Errorf("root file system: %w", err)
	}
	var p plan.Plan
	raw, err := os.ReadFile(filepath.Join(plan.Share, plan.PlanFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("%s: %w", plan.PlanFile, err)
	}
	if err := setEnvironment(p.Machine); err != nil {
		return err
	}
	result := plan.Result{Kernel: release()}
	runErr := carryOut(ctx, p, &result)
	if runErr != nil {
		result.Error = runErr.Error()
	}
	raw, err = json.MarshalIndent(result, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(plan.Share, plan.ResultFile), raw, 0o644); err != nil {
		return err
	}
	return runErr
}

// release is the running kernel's release.
func release() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown: " + err.Error()
	}
	return unix.ByteSliceToString(name.Release[:])
}

// end stops the machine with an exit status: through QEMU's exit port, which takes no time, and by power-off where the
// port is missing. It does not return.
func end(status byte) {
	unix.Sync()
	if port, err := os.OpenFile("/dev/port", os.O_WRONLY, 0); err == nil {
		if _, err := port.WriteAt([]byte{status}, plan.ExitPort); err != nil {
			fmt.Println("guestinit: exit port:", err)
		}
	}
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("guestinit: power off:", err)
	}
	// Pid 1 must not return: that is a kernel panic, which would hide what came before it.
	for {
		time.Sleep(time.Hour)
	}
}
