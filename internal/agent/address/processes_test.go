package address

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/sysfs"
)

const podA, podB = "11111111-2222-3333-4444-555555555555", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"

// procOf makes a proc of processes in control groups.
func procOf(t *testing.T, groups map[int]string) sysfs.FS {
	t.Helper()
	root := t.TempDir()
	for pid, group := range groups {
		dir := filepath.Join(root, "proc", fmt.Sprint(pid))
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"cgroup": "0::" + group, "comm": fmt.Sprintf("command-%d", pid)} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return sysfs.New(root)
}

// TestPodProcesses wants the processes of pods, those of the host left out, and
// one that cannot be read to hide none of the others.
func TestPodProcesses(t *testing.T) {
	t.Parallel()
	groups := map[int]string{
		1: "/init.scope", 2: "/", 40: "/kubepods/pod" + podA + "/c1", 7: "/kubepods/burstable/pod" + podA + "/c2",
		41: "/kubepods/pod" + podB + "/c3",
	}
	want := map[types.UID][]int{podA: {7, 40}, podB: {41}}
	got, err := podProcesses(procOf(t, groups))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v; processes (-want +got):\n%s", err, diff)
	}
	groups[50] = "no path"
	got, err = podProcesses(procOf(t, groups))
	if diff := cmp.Diff(want, got); diff != "" || err == nil || !strings.Contains(err.Error(), "process 50") {
		t.Errorf("error %v, want one of process 50; processes (-want +got):\n%s", err, diff)
	}
	if _, err := podProcesses(sysfs.New(t.TempDir())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v without a proc, want %v", err, fs.ErrNotExist)
	}
}

// TestUnseen wants processes that may not be looked into to matter only where a
// namespace of a pod may be unknown for that, and other errors to stay.
func TestUnseen(t *testing.T) {
	t.Parallel()
	fsys := procOf(t, map[int]string{
		1: "/init.scope", 2: "/", 40: "/kubepods/pod" + podA + "/c1", 41: "/kubepods/pod" + podA + "/c2",
		50: "/kubepods/pod" + podB + "/c3", 51: "/kubepods/pod" + podB + "/c4",
	})
	for name, test := range map[string]struct {
		denied []int
		more   error
		want   []string // in the error; nil for none
	}{
		"of the host and the kernel":  {denied: []int{1, 2}},
		"ended meanwhile":             {denied: []int{99}},
		"one of several of a pod":     {denied: []int{41, 51}},
		"all of a pod":                {denied: []int{1, 40, 41}, want: []string{"pod " + podA + " (process 40, command-40)", "CAP_SYS_PTRACE"}},
		"names, and one of several":   {denied: []int{41}, more: errTest, want: []string{errTest.Error()}},
		"names, and all of two pods":  {denied: []int{40, 41, 50, 51}, more: errTest, want: []string{errTest.Error(), podA, podB}},
		"names, and all may be known": {more: errTest, want: []string{errTest.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs := []error{test.more}
			if test.denied != nil {
				errs = append(errs, &netns.DeniedError{PIDs: test.denied, Of: 6})
			}
			err := unseen(fsys, errors.Join(errs...))
			if (err != nil) != (test.want != nil) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
		})
	}
	many := map[int]string{}
	denied := &netns.DeniedError{Of: 9}
	for pid := 1; pid <= 9; pid++ {
		many[pid], denied.PIDs = fmt.Sprintf("/kubepods/pod%d%s/c", pid, podA[1:]), append(denied.PIDs, pid)
	}
	if err := unseen(procOf(t, many), errors.Join(denied)); err == nil || !strings.Contains(err.Error(), "(process 5, command-5), and 4 more: want") {
		t.Errorf("error %v, want five of nine pods", err)
	}
	blind := unseen(sysfs.New(t.TempDir()), errors.Join(&netns.DeniedError{PIDs: []int{1}, Of: 6}))
	if !errors.Is(blind, fs.ErrPermission) || !errors.Is(blind, fs.ErrNotExist) {
		t.Errorf("error %v where pods of processes are not known, want %v", blind, fs.ErrPermission)
	}
}
