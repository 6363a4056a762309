package attach

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// faults stands between an Attacher and all that it asks of the kernel, counts
// that, and has one of it refused.
type faults struct {
	at     int      // which is refused, counted from 1; 0: none
	isDead bool     // all that follow are refused too
	steps  []string // what was asked
}

// step says whether what is asked is refused.
func (f *faults) step(what string) bool {
	f.steps = append(f.steps, what)
	return len(f.steps) == f.at || f.isDead && len(f.steps) > f.at
}

func (f *faults) refuse(stage string) error {
	if f.step(stage) {
		return errRefused
	}
	return nil
}

// errKernel is what the kernel is made to refuse requests with.
const errKernel = unix.EIO

// describe says all of a request but the number of a link: the node's have others
// each time.
func describe(m netlink.Message) string {
	name, data := typeName(m.Header.Type), slices.Clone(m.Data)
	if strings.HasSuffix(name, " link") {
		binary.NativeEndian.PutUint32(data[4:], 0)
	}
	return fmt.Sprintf("%s: %x", name, data)
}

func typeName(typ netlink.HeaderType) string {
	return map[netlink.HeaderType]string{
		unix.RTM_GETLINK: "get link", unix.RTM_SETLINK: "set link", unix.RTM_DELLINK: "delete link",
		unix.RTM_NEWADDR: "add address", unix.RTM_GETROUTE: "get routes", unix.RTM_NEWROUTE: "add route", unix.RTM_DELROUTE: "delete route",
		unix.RTM_DELRULE: "delete rule", unix.RTM_DELNEIGH: "delete neighbour",
	}[typ]
}

// relayed is another run of the agent, which asks before it asks the kernel, on the
// "node" or in the "pod".
func (w *world) relayed(ask func(where string, m netlink.Message) error) *Attacher {
	w.tb.Helper()
	var a *Attacher
	dial := func(config *rtnl.Config) (*rtnl.Client, error) {
		where := "node"
		if a != nil {
			where = "pod"
		}
		conn, err := kerneltest.Relay(w.tb, config.NetNS, func(m netlink.Message) error { return ask(where, m) })
		return rtnl.New(conn), err
	}
	w.inside(w.home, func() {
		var err error
		if a, err = New(Config{Dial: dial}); err != nil {
			w.tb.Fatal(err)
		}
	})
	a.mark, a.unmark = w.a.mark, w.a.unmark
	w.tb.Cleanup(func() { _ = a.Close() })
	return a
}

// faulty is another run of the agent, which asks the kernel through faults.
func (w *world) faulty(f *faults) *Attacher {
	w.tb.Helper()
	a := w.relayed(func(where string, m netlink.Message) error {
		if f.step(where + ", " + describe(m)) {
			return errKernel
		}
		return nil
	})
	a.refuse = f.refuse
	a.unmark = func(netnsFD int, table string) error {
		if err := f.refuse("marks"); err != nil {
			return err
		}
		return w.a.unmark(netnsFD, table)
	}
	return a
}

// moved is a pod with a device of the node, and links beside it and on it.
func moved(w *world) Pod {
	w.calico()
	w.must(w.node, address(110, "172.16.11.1/24"), address(110, "fd00:16:11::1/64"), rtnl.LinkSet{Index: 110, MTU: 1450, TxQueueLen: new(33)},
		rtnl.RouteAdd{Route: rtnl.Route{Dst: prefix("172.20.0.0/16"), Gateway: ip("172.16.11.254"), LinkIndex: 110}})
	pod := w.eightRails("46")
	dev := &pod.Interfaces[1]
	dev.Link = Link{Kind: HostDevice, Device: Device{Name: parentName(0)}, MTU: 1400}
	dev.MAC = mac("02:00:00:00:00:77")
	dev.Tuning.Promisc = new(true)
	above := rail(2, coordinated(nil), "4")
	above.Link.Parent.Name, above.Link.InContainer = "net1", true
	pod.Interfaces = append(pod.Interfaces, above)
	return pod
}

// TestUndoFails has each thing that Undo asks of the kernel refused in turn. The
// error says which, all else is asked for all the same, and undoing again leaves
// both namespaces as before.
func TestUndoFails(t *testing.T) {
	t.Parallel()
	pods := maps.Clone(shapes())
	delete(pods, "ipv6")
	delete(pods, "one /16") // dual has their parts
	pods["device"] = moved
	for name, shape := range pods {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.rails = 2
				if failed := w.undoFails(shape(w)); failed < 10 {
					t.Errorf("%d parts failed: want all of a plan", failed)
				}
			})
		})
	}
}

// undoFails attaches a pod again and again, and says in how many ways undoing that
// failed.
func (w *world) undoFails(pod Pod) int {
	w.tb.Helper()
	before, flags := w.snapshot(), w.parentFlags()
	plan := w.plan(pod)
	var f faults
	later := w.faulty(&f)
	undo := func(at int) error {
		f = faults{at: at}
		return later.Undo(w.tb.Context(), plan, nil)
	}
	var all []string
	for at := 0; at <= len(all); at++ {
		if _, err := w.a.Apply(w.tb.Context(), plan); err != nil {
			w.tb.Fatal(err)
		}
		err := undo(at)
		if at == 0 {
			all = f.steps
		} else {
			w.isOneFailure(all[at-1], err)
			if left := leftOut(all, f.steps, all[at-1]); len(left) > 0 {
				w.tb.Errorf("%s was refused, and not asked for was\n%s", all[at-1], strings.Join(left, "\n"))
			}
			if err := undo(0); err != nil {
				w.tb.Errorf("%v; undone again: %v", err, err)
			}
		}
		w.same(fmt.Sprint("after ", err), before)
		if now := w.parentFlags(); now != flags {
			w.tb.Errorf("after %v: flags %+v, want %+v", err, now, flags)
		}
		if w.tb.Failed() {
			w.tb.FailNow()
		}
	}
	return len(all)
}

// parentFlags are those of the device that moved has.
func (w *world) parentFlags() (f flags) {
	w.tb.Helper()
	w.inside(w.home, func() {
		var err error
		if f, err = linkFlags(parentName(0)); err != nil {
			w.tb.Error(err)
		}
	})
	return f
}

// isOneFailure wants an error of nothing but what was refused, by name. A device
// that is not up again, or has no address, can have no routes yet, which is said too.
func (w *world) isOneFailure(refused string, err error) {
	w.tb.Helper()
	kernel, ok := errors.AsType[*rtnl.Error](err)
	switch {
	case err == nil, !strings.HasPrefix(refused, "node, set link") && !strings.HasPrefix(refused, "node, add address") && strings.Contains(err.Error(), "\n"):
		w.tb.Errorf("%s was refused: %v, want an error of that alone", refused, err)
	case ok && (kernel.Errno != errKernel || kernel.Object == ""), !ok && !errors.Is(err, errRefused):
		w.tb.Errorf("%s was refused: %v, want what it was", refused, err)
	}
}

// leftOut are the parts that were not asked for, although they need nothing of
// what was refused.
func leftOut(all, done []string, refused string) []string {
	done = slices.Clone(done)
	var left []string
	for _, part := range all {
		if n := slices.Index(done, part); n >= 0 {
			done = slices.Delete(done, n, n+1)
		} else if part != refused && !needs(part, refused) {
			left = append(left, part)
		}
	}
	return left
}

// needs says whether a part comes only after another was done: the node's rules
// stay while there are routes in their tables; a device is made what it was once it
// is back, and loses its mark when it is that; a bond goes after its members. Which number it has in the
// pod is found in the list there, and that it is not in the group that is deleted.
func needs(part, other string) bool {
	is := func(text string, starts ...string) bool {
		return slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(text, start) })
	}
	return is(part, "node, delete rule") && is(other, "node, delete route", "node, get routes") ||
		is(part, "node, set link", "node, add address", "node, add route", "device") && is(other, "node, get link", "node, set link", "node, add", "pod, get link", "pod, set link", "device") ||
		is(part, "node, delete link", "node, get link") && is(other, "node, get link", "node, set link") ||
		is(part, "pod, set link", "pod, delete link") && is(other, "pod, get link")
}
