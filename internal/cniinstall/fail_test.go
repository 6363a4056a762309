package cniinstall

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// failing has one step fail, the k-th from 0, and notes all that are made.
type failing struct {
	at     int
	steps  []string
	failed string // the step and its path; "" while none was
	path   string
}

func (f *failing) before(step, path string) error {
	f.steps = append(f.steps, step+" "+path)
	if len(f.steps) != f.at+1 {
		return nil
	}
	f.failed, f.path = step+" "+path, path
	return syscall.EIO
}

// isTold says whether an error of what failed names its path. To some steps there is
// another way, or nothing changes by them: an installed program that cannot be read is
// written again.
func (f *failing) isTold(err error) bool {
	if err == nil {
		return f.failed == "" || strings.HasPrefix(f.failed, "link") || strings.HasPrefix(f.failed, "lstat") ||
			strings.HasPrefix(f.failed, "read ") && filepath.Base(filepath.Dir(f.path)) == "bin"
	}
	return strings.Contains(err.Error(), f.path)
}

// TestEveryStepFails lets each step of a pass fail in turn, of the first one and in an
// upgrade. Each file is as it was or as it is to be, whole, at any time, no network is
// there without its program, and the next pass makes all right.
func TestEveryStepFails(t *testing.T) {
	t.Parallel()
	for _, upgrade := range []bool{false, true} {
		for f := (failing{}); f.at == 0 || f.failed != ""; {
			n := newNode(t, map[string]string{"10-calico.conflist": flannel})
			n.copyTo("sriov", "foreign")
			if upgrade {
				n.config.Program = release(t, "old")
				n.ensure()
			}
			n.put(map[string]string{"10-calico.conflist": calico})
			old := n.snapshot()
			n.config.Program = release(t, "new")
			f = failing{at: f.at}
			n.disk.before = f.before
			_, err := n.Ensure(t.Context())
			n.disk.before = nil
			if !f.isTold(err) {
				t.Errorf("%s failed, and it is said %v", f.failed, err)
			}
			torn := n.snapshot()
			if torn["net.d/"+File] != "" && torn["bin/"+Program] == "" {
				t.Errorf("while %s failed: a network without its program", f.failed)
			}
			s := n.ensure()
			now := n.snapshot()
			want := programs("sriov")
			maps.Copy(want, map[string]string{"bin/sriov": "-rwxr-xr-x <foreign>", "net.d/10-calico.conflist": "-rw------- " + calico, "net.d/" + File: now["net.d/"+File]})
			if d := cmp.Diff(want, now); d != "" || len(s.Foreign) != 1 || !strings.Contains(now["net.d/"+File], "k8s-pod-network") {
				t.Errorf("after %s failed: %+v (-want +got)\n%s", f.failed, s, d)
			}
			for path, is := range torn {
				if is != old[path] && is != now[path] {
					t.Errorf("while %s failed: %s is %.80s", f.failed, path, is)
				}
			}
			for path := range old {
				if torn[path] == "" {
					t.Errorf("while %s failed: %s is not there", f.failed, path)
				}
			}
			f.at++
		}
	}
}

// TestEveryStepOfRemovalFails lets each step of a removal fail in turn. The rest is
// removed, the network first, but no program that a runtime is still told to call;
// the next time, all is.
func TestEveryStepOfRemovalFails(t *testing.T) {
	t.Parallel()
	for f := (failing{}); f.at == 0 || f.failed != ""; {
		n := newNode(t, map[string]string{"10-calico.conflist": calico})
		n.copyTo("sriov", "foreign")
		before := n.snapshot()
		n.ensure()
		n.put(map[string]string{File + ".cilium_bak": "{}", "." + File + ".railhead.tmp": "half"})
		f = failing{at: f.at}
		n.disk.before = f.before
		_, err := n.Remove(t.Context())
		n.disk.before = nil
		if !f.isTold(err) {
			t.Errorf("%s failed, and it is said %v", f.failed, err)
		}
		left := n.snapshot()
		_, network := left["net.d/"+File]
		_, program := left["bin/"+Program]
		if network && !program {
			t.Errorf("while %s failed: a network without its program", f.failed)
		}
		for path := range before {
			delete(left, path)
		}
		if err == nil && len(left) > 0 {
			t.Errorf("%s failed, and nobody says what is left: %q", f.failed, left)
		}
		if locked := strings.HasPrefix(f.failed, "lock"); !locked {
			delete(left, rel(f.path))
			if network || err != nil && strings.Contains(err.Error(), "may still name it") {
				delete(left, "bin/"+Program)
			}
			if len(left) > 0 {
				t.Errorf("after %s failed, there is still %q", f.failed, slices.Sorted(maps.Keys(left)))
			}
		}
		if first := slices.IndexFunc(f.steps, func(s string) bool { return strings.HasPrefix(s, "remove ") }); first >= 0 && f.steps[first] != "remove "+n.file() && !strings.HasPrefix(f.failed, "lock") {
			t.Errorf("removed first: %s, want the network", f.steps[first])
		}
		if _, err := n.Remove(t.Context()); err != nil {
			t.Errorf("after %s failed: %v", f.failed, err)
		}
		if d := cmp.Diff(before, n.snapshot()); d != "" {
			t.Errorf("after %s failed (-want +got)\n%s", f.failed, d)
		}
		f.at++
	}
}

// rel is a path as a snapshot has it.
func rel(path string) string {
	return filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
}
