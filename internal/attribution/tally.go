package attribution

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"railhead/internal/kernel/rdmanl"
)

// tally counts objects by user.
type tally struct {
	a      *Attributor
	byPID  map[int]*Use // of threads, as objects name them
	byPod  map[string]*Use
	kernel map[string]*Use
	host   Use
	unseen Use // of processes that cannot be told; they count as the host's
	errs   []error
}

func newTally(a *Attributor) *tally {
	return &tally{a: a, byPID: map[int]*Use{}, byPod: map[string]*Use{}, kernel: map[string]*Use{}}
}

// presence counts contexts and protection domains. Kernels before 5.13 do not
// show contexts; there a domain, which queue pairs need, stands for them.
func (t *tally) presence(c *rdmanl.Client, device uint32) {
	contexts, err := c.Contexts(device)
	areShown := !errors.Is(err, rdmanl.ErrNotSupported)
	if err != nil && areShown {
		t.hide(err)
	}
	for i := range contexts {
		t.user(contexts[i].Owner).Contexts++
	}
	if areShown {
		t.compare(c, device, len(contexts))
	}
	domains, err := c.PDs(device)
	if err != nil {
		t.hide(err)
	}
	for i := range domains {
		t.user(domains[i].Owner).PDs++
	}
}

// compare asks for the number of contexts, because older kernels hide objects
// of other PID namespaces. One that was just opened or closed counts as hidden
// too, until it is asked again.
func (t *tally) compare(c *rdmanl.Client, device uint32, listed int) {
	counts, err := c.Resources(device)
	if err != nil {
		t.hide(err)
		return
	}
	if n := countOf(counts, "ctx"); n > uint64(listed) {
		t.host.Unseen += int(n) - listed
	}
}

// countOf returns how many objects of a kind there are.
func countOf(counts []rdmanl.ResourceCount, kind string) uint64 {
	i := slices.IndexFunc(counts, func(c rdmanl.ResourceCount) bool { return c.Name == kind })
	if i < 0 {
		return 0
	}
	return counts[i].Count
}

// queuePairs counts queue pairs where there are no more than most. How many
// there are, the kernel knows without the driver.
func (t *tally) queuePairs(c *rdmanl.Client, device uint32, most int) {
	counts, err := c.Resources(device)
	t.failed(err)
	if err != nil || countOf(counts, "qp") > uint64(most) {
		return
	}
	qps, err := c.QPs(device)
	t.failed(err)
	for i := range qps {
		t.user(qps[i].Owner).countQueuePairs(QPKind{qps[i].Type, qps[i].State}, 1)
	}
}

// failed keeps an error; what a kernel or driver does not have is none.
func (t *tally) failed(err error) {
	if err != nil && !errors.Is(err, rdmanl.ErrNotSupported) {
		t.errs = append(t.errs, err)
	}
}

// hide keeps an error that leaves open who is there.
func (t *tally) hide(err error) {
	t.errs = append(t.errs, err)
	t.host.Unseen++
}

// user returns who made an object.
func (t *tally) user(o rdmanl.Owner) *Use {
	if o.KernelName != "" {
		u, _ := entry(t.kernel, o.KernelName)
		u.Kernel = o.KernelName
		return u
	}
	if u := t.byPID[o.PID]; u != nil {
		return u
	}
	u := t.process(o.PID)
	t.byPID[o.PID] = u
	return u
}

// process returns the user that a process or thread belongs to.
func (t *tally) process(pid int) *Use {
	if pid == 0 {
		return &t.unseen
	}
	process, err := t.a.processes.of(pid)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			t.errs = append(t.errs, err)
		}
		return &t.unseen
	}
	u := &t.host
	if process.pod != "" {
		u = t.pod(process.pod)
	}
	if !slices.Contains(u.PIDs, process.group) {
		u.PIDs = append(u.PIDs, process.group)
	}
	return u
}

func (t *tally) pod(uid string) *Use {
	u, isNew := entry(t.byPod, uid)
	if isNew {
		u.Pod = t.a.newest(unknownPod(uid))
	}
	return u
}

// uses returns all that was counted, in order.
func (t *tally) uses() []Use {
	t.host.Unseen += t.unseen.Contexts + t.unseen.PDs
	t.host.add(&t.unseen)
	users := slices.Collect(maps.Values(t.byPod))
	if t.host.Contexts+t.host.PDs+t.host.MRs+t.host.CMIDs+len(t.host.QPs)+t.host.Unseen > 0 {
		users = append(users, &t.host)
	}
	users = slices.AppendSeq(users, maps.Values(t.kernel))
	slices.SortFunc(users, compareUsers)
	all := make([]Use, len(users))
	for i, u := range users {
		slices.Sort(u.PIDs)
		all[i] = *u
	}
	return all
}

// add adds the objects of other.
func (u *Use) add(other *Use) {
	u.Contexts += other.Contexts
	u.PDs += other.PDs
	u.MRs += other.MRs
	u.MRBytes += other.MRBytes
	u.CMIDs += other.CMIDs
	for kind, n := range other.QPs {
		u.countQueuePairs(kind, n)
	}
}

func (u *Use) countQueuePairs(kind QPKind, n int) {
	if u.QPs == nil {
		u.QPs = map[QPKind]int{}
	}
	u.QPs[kind] += n
}

// compareUsers orders pods before the host, and that before the kernel.
func compareUsers(a, b *Use) int {
	if a.Pod == nil || b.Pod == nil {
		rank := map[bool]int{true: 0, false: 1}
		return cmp.Or(
			cmp.Compare(rank[a.Pod != nil], rank[b.Pod != nil]),
			cmp.Compare(a.Kernel, b.Kernel),
		)
	}
	return cmp.Or(
		cmp.Compare(a.Pod.Namespace, b.Pod.Namespace),
		cmp.Compare(a.Pod.Name, b.Pod.Name),
		cmp.Compare(a.Pod.UID, b.Pod.UID),
	)
}
