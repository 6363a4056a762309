package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// searchEvery is how often the processes of a real node are looked through.
const searchEvery = time.Second

// process is a process of a real node that a pod of the scenario matches.
type process struct {
	pid   int
	start uint64
}

// crew is where processes belong together: the pod of the scenario that they
// match, and the control groups of their container.
type crew struct {
	place int
	group string
}

// matchPods has the processes that match use devices, and those that are gone not
// any more.
func (m *machine) matchPods(t time.Duration) error {
	if len(m.scenario.Pods) == 0 || t < m.ground.searched+searchEvery {
		return nil
	}
	m.ground.searched = t
	found, err := m.search()
	for _, r := range slices.Clone(m.runs) {
		at := crew{place: r.place, group: r.group}
		m.muster(r, found[at])
		delete(found, at)
	}
	begun := make([]crew, 0, len(found))
	for at := range found {
		begun = append(begun, at)
	}
	slices.SortFunc(begun, func(a, b crew) int { return found[a][0].compare(found[b][0]) })
	for _, at := range begun {
		m.muster(m.newCrew(at), found[at])
	}
	return err
}

func (p process) compare(o process) int {
	return cmp.Or(cmp.Compare(p.start, o.start), cmp.Compare(p.pid, o.pid))
}

// search looks through all processes, and returns those that match, the oldest of
// each crew first.
func (m *machine) search() (map[crew][]process, error) {
	proc := m.FS().Path("proc")
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("processes of the node: %w", err)
	}
	found, denied := map[crew][]process{}, 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		at, p, err := m.look(pid)
		switch {
		case errors.Is(err, fs.ErrPermission) && exists(path.Join(proc, e.Name())):
			denied++
		case err == nil && at.place >= 0:
			found[at] = append(found[at], p)
		}
	}
	for at, all := range found {
		slices.SortFunc(all, process.compare)
		found[at] = all[:min(len(all), m.scenario.Pods[at.place].Processes)]
	}
	m.ground.denied = denied
	return found, nil
}

// exists tells a process that may not be looked into from one that has ended.
func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// look finds the pod of the scenario that a process matches; the place is negative
// where it matches none.
func (m *machine) look(pid int) (crew, process, error) {
	none := crew{place: -1}
	environment, err := m.readProc(pid, "environ")
	if err != nil {
		return none, process{}, err
	}
	place := slices.IndexFunc(m.scenario.Pods, func(p Pod) bool { return matches(environment, p.Match) })
	if place < 0 {
		return none, process{}, nil
	}
	start, err := m.FS().StartTime(pid)
	if err != nil {
		return none, process{}, err
	}
	group, err := m.readProc(pid, "cgroup")
	return crew{place: place, group: group}, process{pid: pid, start: start}, err
}

// readProc reads a file of a process. One that has ended is fs.ErrNotExist.
func (m *machine) readProc(pid int, name string) (string, error) {
	text, err := os.ReadFile(m.FS().Path("proc", strconv.Itoa(pid), name))
	if errors.Is(err, unix.ESRCH) {
		err = fs.ErrNotExist
	}
	return string(text), err
}

// matches tells whether an environment, as proc has it, has all variables of some
// patterns. Where one is there twice, the first counts, as it does for getenv(3).
func matches(environment string, patterns map[string]string) bool {
	left := len(patterns)
	seen := make(map[string]bool, len(patterns))
	for variable := range strings.SplitSeq(environment, "\x00") {
		name, value, _ := strings.Cut(variable, "=")
		pattern, isWanted := patterns[name]
		if !isWanted || seen[name] {
			continue
		}
		seen[name] = true
		if ok, err := path.Match(pattern, value); !ok || err != nil {
			return false
		}
		left--
	}
	return left == 0
}

// newCrew lets processes that were not there before begin.
func (m *machine) newCrew(at crew) *run {
	r := &run{pod: &m.scenario.Pods[at.place], place: at.place, group: at.group, number: m.made, begun: m.moment(), space: m.host}
	m.made++
	for _, f := range m.functions() {
		if !r.pod.uses(f) {
			continue
		}
		r.functions = append(r.functions, f)
		if !r.address.IsValid() {
			r.address = f.ip()
		}
		if r.pod.Traffic != nil {
			f.card.mu.Lock()
			s := m.newSource(f.card, r.pod, r.pod.Traffic, schedule{from: m.moment()}, f.id, strconv.Itoa(r.number))
			s.run = r
			f.add(s)
			f.card.mu.Unlock()
		}
	}
	m.runs = append(m.runs, r)
	return r
}

// uses tells whether a pod of a real node uses a function.
func (p *Pod) uses(f *function) bool { return len(p.Devices) == 0 || slices.Contains(p.Devices, f.id) }

// ip is an IPv4 address of the netdev; invalid where it has none.
func (f *function) ip() netip.Addr {
	for _, a := range f.addresses() {
		if a.Prefix.Addr().Is4() {
			return a.Prefix.Addr()
		}
	}
	return netip.Addr{}
}

// muster brings the processes of a run up to date, which ends where there are none.
func (m *machine) muster(r *run, now []process) {
	users := make([]int, 0, len(now))
	for _, p := range now {
		users = append(users, p.pid)
	}
	if slices.Equal(users, r.users) {
		return
	}
	for _, pid := range users {
		if !slices.Contains(r.users, pid) {
			m.crowds[r.place].join()
		}
	}
	for _, pid := range r.users {
		if !slices.Contains(users, pid) {
			m.crowds[r.place].leave()
		}
	}
	r.users = users
	if len(users) == 0 {
		m.runs = slices.DeleteFunc(m.runs, func(o *run) bool { return o == r })
	}
	for _, f := range r.functions {
		if len(users) == 0 {
			f.leave(r, m.moment)
		}
		m.users(f)
	}
}

// leave ends the traffic of a pod that is gone. What it brought stays.
func (f *function) leave(r *run, moment func() time.Duration) {
	f.card.mu.Lock()
	defer f.card.mu.Unlock()
	t := moment()
	f.sources = slices.DeleteFunc(f.sources, func(s *source) bool {
		if s.run != r {
			return false
		}
		f.past.add(s.load(t, f.card.payload))
		return true
	})
}
