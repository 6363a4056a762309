package address

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/attribution"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/sysfs"
)

// podProcesses returns the numbers of the processes of pods, in order, by the UID
// of the pod. With an error there may be more. It needs no privilege.
func podProcesses(fsys sysfs.FS) (map[types.UID][]int, error) {
	entries, err := os.ReadDir(fsys.Path("proc"))
	pods, errs := map[types.UID][]int{}, []error{err}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		uid, err := attribution.PodOf(fsys, pid)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has ended
		case err != nil:
			errs = append(errs, fmt.Errorf("pod of process %d: %w", pid, err))
		case uid != "":
			pods[types.UID(uid)] = append(pods[types.UID(uid)], pid)
		}
	}
	for _, pids := range pods {
		slices.Sort(pids)
	}
	return pods, errors.Join(errs...)
}

// unseen is what of an error of netns.List says that a namespace with addresses
// of ours may not have been found. Of processes that may not be looked into, only
// those of a pod of which no process may be: the processes of a pod share its
// namespace, and those of no pod (of the host, and of the kernel) have no address
// of ours.
func unseen(fsys sysfs.FS, err error) error {
	list, isList := err.(interface{ Unwrap() []error })
	if !isList {
		return err
	}
	var errs []error
	for _, err := range list.Unwrap() {
		if denied, ok := errors.AsType[*netns.DeniedError](err); ok {
			err = unseenPods(fsys, denied)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// unseenPods names a process of each pod of which none may be looked into.
func unseenPods(fsys sysfs.FS, denied *netns.DeniedError) error {
	pods, err := podProcesses(fsys)
	if err != nil {
		return errors.Join(denied, err)
	}
	var list []string
	for uid, pids := range pods {
		isDenied := func(pid int) bool { return slices.Contains(denied.PIDs, pid) }
		if !slices.ContainsFunc(pids, func(pid int) bool { return !isDenied(pid) }) {
			list = append(list, fmt.Sprintf("pod %s (process %d, %s)", uid, pids[0], command(fsys, pids[0])))
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.Sort(list)
	const few = 5
	if more := len(list) - few; more > 0 {
		list = append(list[:few], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("no process may be looked into of %s: want CAP_SYS_PTRACE, and no profile of AppArmor or SELinux that forbids it: %w",
		strings.Join(list, ", "), fs.ErrPermission)
}

// command is the name of a process, for people.
func command(fsys sysfs.FS, pid int) string {
	text, err := os.ReadFile(fsys.Path("proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		return "of unknown name"
	}
	return strings.TrimSpace(string(text))
}
