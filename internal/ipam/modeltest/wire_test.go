package modeltest

import (
	"fmt"
	"net/netip"
	"slices"
)

// A sandbox is a network namespace with addresses, on a machine that runs.
type sandbox struct {
	machine   *machine // nil: from before Railhead
	pod       *podObject
	id        string
	addresses []netip.Addr
	losses    int // of its machine's journals, before
}

func (s *sandbox) String() string {
	where := "elsewhere"
	if s.machine != nil {
		where = s.machine.String()
	}
	return fmt.Sprintf("%s (%s, sandbox %s, owner %s) on %s", s.pod.name, s.pod.uid, s.id, s.pod.owner(), where)
}

// A wire is the truth that no part of the system sees as a whole: which live
// sandbox has which address.
type wire struct {
	w      *world
	claims map[netip.Addr][]*sandbox
}

// claim puts addresses on the wire: two owners of one are the failure that all
// this is about.
func (t *wire) claim(s *sandbox) {
	for _, addr := range s.addresses {
		if other := t.other(addr, s.pod); other != nil {
			t.w.fail(fmt.Errorf("%s is given twice: to %s, and still used by %s", addr, s, other))
		}
		t.claims[addr] = append(t.claims[addr], s)
	}
}

// other is a live sandbox of another owner with the address, if there is one:
// what a probe finds out.
func (t *wire) other(addr netip.Addr, pod *podObject) *sandbox {
	for _, o := range t.claims[addr] {
		if o.pod.owner() != pod.owner() {
			return o
		}
	}
	return nil
}

// drop is the end of a sandbox.
func (t *wire) drop(s *sandbox) {
	for _, addr := range s.addresses {
		left := slices.DeleteFunc(t.claims[addr], func(o *sandbox) bool { return o == s })
		if len(left) == 0 {
			delete(t.claims, addr)
		} else {
			t.claims[addr] = left
		}
	}
}
