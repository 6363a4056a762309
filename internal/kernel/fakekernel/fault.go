package fakekernel

import (
	"slices"

	"golang.org/x/sys/unix"
)

// refusal is an error that answers a kind of request.
type refusal struct {
	errno   unix.Errno
	objects []int // none for all
}

// Refuse answers a kind of request with an error number from now on, 0 for no
// longer; where objects are given, only requests about one of them. A dump
// comes to its end at the first of them. It takes the place of what was said of
// this kind before.
//
// An object is the index of a link or RDMA device, or the place of a health
// reporter in Facts.Devlink.
func (k *Kernel) Refuse(r Request, errno unix.Errno, objects ...int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refusals[r] = refusal{errno: errno, objects: objects}
	clear(k.replies)
}

// Interrupt marks the next dumps of a kind as interrupted by a change.
func (k *Kernel) Interrupt(r Request, times int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.torn[r] = times
}

// refused returns the error number by which a request is refused, 0 for none.
func (k *Kernel) refused(q question) unix.Errno {
	r := k.refusals[q.request]
	if len(r.objects) == 0 || q.about && slices.Contains(r.objects, q.object) {
		return r.errno
	}
	return 0
}

// cutOff ends a dump of all at the first object that is refused.
func (k *Kernel) cutOff(q question, a answer) answer {
	r := k.refusals[q.request]
	i := slices.IndexFunc(a.objects, func(o int) bool { return slices.Contains(r.objects, o) })
	if r.errno != 0 && q.dump && !q.about && i >= 0 {
		a.objects, a.bodies, a.errno = a.objects[:i], a.bodies[:i], r.errno
	}
	return a
}
