package simulation

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rtnl"
)

// start lets a pod begin: its network, its devices, its processes.
func (m *machine) start(r *run) error {
	r.space = m.host
	if !r.pod.HostNetwork {
		n, err := newNamespace(filepath.Join(m.dir, "nsfs"), m.made, m.facts(),
			newTree(filepath.Join(m.dir, "netns", strconv.Itoa(m.made))))
		if err != nil {
			return err
		}
		n.tree.mkdir("sys/class/infiniband")
		m.made++
		m.spaces = append(m.spaces, n)
		r.space = n
		m.connect(r)
	}
	m.runs = append(m.runs, r)
	for i, f := range r.functions {
		switch {
		case r.isAlone():
			f.address = r.railAddress(f)
			m.move(f, r.space, fmt.Sprintf("net%d", i+1))
		case !r.pod.HostNetwork:
			m.addMacvlan(r, f, fmt.Sprintf("net%d", i+1))
		}
		m.users(f)
	}
	m.addProcesses(r)
	return nil
}

// connect gives a pod its eth0.
func (m *machine) connect(r *run) {
	m.links++
	link := rtnl.Link{
		Index: m.links, Name: "eth0", Type: 1, Kind: "veth", Address: fmt.Sprintf("0a:58:0a:f4:%02x:%02x", r.number>>8&0xff, r.number&0xff),
		Up: true, Running: true, OperState: "up", MTU: 1500, ParentIndex: m.links, ParentNetNS: new(0),
	}
	m.put(r.space, link, netip.PrefixFrom(r.address, 24))
}

// addMacvlan gives a pod a macvlan on the netdev of a function.
func (m *machine) addMacvlan(r *run, f *function, name string) {
	if f.netdev == "" || f.isInfiniBand() {
		return
	}
	m.links++
	link := rtnl.Link{
		Index: m.links, Name: name, Type: 1, Kind: "macvlan", Mode: "bridge", Address: fmt.Sprintf("0a:1b:2c:00:%02x:%02x", m.links>>8&0xff, m.links&0xff),
		Up: true, Running: true, OperState: "up", MTU: f.mtu(), ParentIndex: f.link, ParentNetNS: new(0),
	}
	m.put(r.space, link, r.railAddress(f))
}

func (m *machine) put(n *namespace, link rtnl.Link, address netip.Prefix) {
	n.kernel.Change(func(k *fakekernel.Facts) {
		k.Links = append(k.Links, link)
		k.Addresses = append(k.Addresses, rtnl.Address{LinkIndex: link.Index, Prefix: address, Label: link.Name, Scope: "global"})
	})
}

// railAddress is the address of a pod on a rail.
func (r *run) railAddress(f *function) netip.Prefix {
	const rails, firstRail = 16, 16 // 172.16.0.0/12
	return netip.PrefixFrom(r.addressIn(172, firstRail+*f.card.spec.Rail%rails), 16)
}

// users brings what uses a device up to date.
func (m *machine) users(f *function) {
	f.place.kernel.ChangeHCA(f.index, func(h *fakekernel.HCA) {
		h.Contexts, h.PDs, h.CQs, h.QPs, h.MRs, h.CMIDs = nil, nil, nil, nil, nil, nil
		for _, r := range m.runs {
			if slices.Contains(r.functions, f) {
				r.use(h)
			}
		}
		m.bind(f, h)
	})
}

// stop ends a pod. What is in its namespace comes home as soon as nobody holds
// that open.
func (m *machine) stop(r *run) {
	m.runs = slices.DeleteFunc(m.runs, func(o *run) bool { return o == r })
	m.removeProcesses(r)
	for _, f := range r.functions {
		m.users(f)
	}
	if r.space != m.host {
		r.space.isOver = true
	}
}

// sweep ends the namespaces that are over, and that nobody holds open or has a
// client in.
func (m *machine) sweep() error {
	var errs []error
	m.spaces = slices.DeleteFunc(m.spaces, func(n *namespace) bool {
		if !n.isOver || n.handles > 0 || n.kernel.Sockets() > 0 {
			return false
		}
		for _, f := range m.functions() {
			if f.place == n || f.netPlace == n {
				f.address = netip.Prefix{}
				m.move(f, m.host, f.netdev)
			}
		}
		errs = append(errs, n.end())
		return true
	})
	return errors.Join(errs...)
}

// schedulePods starts and stops pods for a moment. It returns those that began
// and those that ended.
func (m *machine) schedulePods(t time.Duration) (begun, ended []*run, err error) {
	due := m.due(t)
	for _, r := range slices.Clone(m.runs) {
		if !slices.ContainsFunc(due, func(d *run) bool { return d.uid == r.uid }) {
			m.stop(r)
			ended = append(ended, r)
		}
	}
	if err := m.sweep(); err != nil {
		return nil, ended, err
	}
	for _, d := range due {
		if slices.ContainsFunc(m.runs, func(r *run) bool { return d.uid == r.uid }) || m.isHeld(d) {
			continue
		}
		if err := m.start(d); err != nil {
			return begun, ended, err
		}
		begun = append(begun, d)
	}
	return begun, ended, nil
}

// due returns the pods that are to run at a moment.
func (m *machine) due(t time.Duration) []*run {
	functions := map[string]*function{}
	for _, f := range m.functions() {
		functions[f.id] = f
	}
	var due []*run
	for i := range m.scenario.Pods {
		if count, active := m.scenario.Pods[i].schedule().turn(t); active {
			due = append(due, newRun(m.scenario, i, count-1, functions))
		}
	}
	return due
}

// isHeld tells whether a device that a pod is to have alone has not come home
// yet.
func (m *machine) isHeld(r *run) bool {
	return r.isAlone() && slices.ContainsFunc(r.functions, func(f *function) bool { return f.netPlace != nil && f.netPlace != m.host || f.place != m.host })
}
