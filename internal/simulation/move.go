package simulation

import (
	"fmt"
	"slices"
	"strconv"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/uevent"
)

// putNetdev brings the netdev of a function into a namespace under a name, and
// says so there.
func (m *machine) putNetdev(f *function, n *namespace, name string) {
	f.netPlace, f.name = n, name
	f.addNetdevFiles()
	link, nic := f.netlink(), m.nic(f)
	n.kernel.Change(func(k *fakekernel.Facts) {
		k.Links = append(k.Links, link)
		slices.SortFunc(k.Links, func(a, b rtnl.Link) int { return a.Index - b.Index })
		k.Addresses = append(k.Addresses, f.addresses()...)
		k.Settings = with(k.Settings, f.link, f.settings())
		k.NICs = with(k.NICs, f.link, nic)
	})
	n.kernel.SendLink(link, false)
	for _, a := range f.addresses() {
		n.kernel.SendAddress(a, false)
	}
	m.announce(n, "add", "net", f.netDir(), map[string]string{"INTERFACE": name, "IFINDEX": strconv.Itoa(f.link)})
}

// takeNetdev takes it away again.
func (m *machine) takeNetdev(f *function) {
	n := f.netPlace
	f.removeNetdevFiles()
	n.kernel.Change(func(k *fakekernel.Facts) {
		k.Links = slices.DeleteFunc(k.Links, func(l rtnl.Link) bool { return l.Index == f.link })
		k.Addresses = slices.DeleteFunc(k.Addresses, func(a rtnl.Address) bool { return a.LinkIndex == f.link })
		delete(k.Settings, f.link)
		delete(k.NICs, f.link)
	})
	n.kernel.SendLink(f.netlink(), true)
	m.announce(n, "remove", "net", f.netDir(), map[string]string{"INTERFACE": f.name, "IFINDEX": strconv.Itoa(f.link)})
}

// putRDMA brings the RDMA device of a function into a namespace, and says so
// there. Its character devices are new ones.
func (m *machine) putRDMA(f *function, n *namespace) {
	f.place = n
	m.addChars(f)
	f.addRDMAFiles()
	f.writeState()
	f.writeCounters(m.moment())
	hca := m.hca(f)
	for _, r := range m.runs {
		if slices.Contains(r.functions, f) {
			r.use(hca)
		}
	}
	m.bind(f, hca)
	n.kernel.Change(func(k *fakekernel.Facts) {
		k.RDMA = append(k.RDMA, f.device())
		slices.SortFunc(k.RDMA, func(a, b rdmanl.Device) int { return int(a.Index) - int(b.Index) })
		k.HCAs = with(k.HCAs, f.index, hca)
	})
	m.announce(n, "add", "infiniband", f.rdmaDir(), map[string]string{"NAME": f.rdma})
}

// takeRDMA takes it away again.
func (m *machine) takeRDMA(f *function) {
	n := f.place
	m.removeChars(f)
	f.removeRDMAFiles()
	n.kernel.Change(func(k *fakekernel.Facts) {
		k.RDMA = slices.DeleteFunc(k.RDMA, func(d rdmanl.Device) bool { return d.Index == f.index })
		delete(k.HCAs, f.index)
	})
	m.announce(n, "remove", "infiniband", f.rdmaDir(), map[string]string{"NAME": f.rdma})
}

// move takes the devices of a function to another namespace: the RDMA device
// where that belongs to one.
func (m *machine) move(f *function, to *namespace, name string) {
	isExclusive := m.scenario.NetNSMode == modeExclusive
	if isExclusive {
		m.takeRDMA(f)
	}
	if f.netdev != "" {
		m.takeNetdev(f)
		m.putNetdev(f, to, name)
	}
	if isExclusive {
		m.putRDMA(f, to)
		return
	}
	m.tell(f) // its port has another netdev now, or none
}

// tell brings what a namespace knows of a function up to date, after its port or
// its netdev changed.
func (m *machine) tell(f *function) {
	f.writeGIDs(f.rdmaDir() + "/ports/1")
	f.writeState()
	f.place.kernel.Change(func(k *fakekernel.Facts) {
		for i := range k.RDMA {
			if k.RDMA[i].Index == f.index {
				k.RDMA[i] = f.device()
			}
		}
	})
	if f.netPlace == nil {
		return
	}
	link := f.netlink()
	f.netPlace.kernel.Change(func(k *fakekernel.Facts) {
		for i := range k.Links {
			if k.Links[i].Index == f.link {
				k.Links[i] = link
			}
		}
		k.Settings = with(k.Settings, f.link, f.settings())
	})
	f.netPlace.kernel.SendLink(link, false)
}

// announce makes a uevent. A device of a class that belongs to namespaces is
// announced in its own.
func (m *machine) announce(n *namespace, action, subsystem, dir string, vars map[string]string) {
	n.kernel.SendUevent(uevent.Event{Action: action, Subsystem: subsystem, DevPath: dir[len("sys"):], Vars: vars})
}

// with returns a map with an element more.
func with[K comparable, V any](all map[K]V, key K, value V) map[K]V {
	if all == nil {
		all = map[K]V{}
	}
	all[key] = value
	return all
}

// Numbers of character devices.
const (
	verbsMajor = 231
	firstVerbs = 192
	verbsABI   = 1
	madABI     = 5
)

// charDevices are those of a function as netlink describes them; the second is
// nil where the driver takes no management packets.
func (m *machine) charDevices(f *function) (uverbs, umad *rdmanl.CharDevice) {
	uverbs = &rdmanl.CharDevice{
		Name: fmt.Sprintf("uverbs%d", f.char), Major: verbsMajor, Minor: uint32(firstVerbs + f.char), ABI: verbsABI,
	}
	if f.netdev != "" {
		umad = &rdmanl.CharDevice{Name: fmt.Sprintf("umad%d", f.char), Major: verbsMajor, Minor: uint32(f.char), ABI: madABI}
	}
	return uverbs, umad
}

// addChars writes the character devices of a function, whose classes belong to
// no namespace.
func (m *machine) addChars(f *function) {
	f.char = m.freeChar()
	t := m.host.tree
	uverbs, umad := m.charDevices(f)
	for class, c := range map[string]*rdmanl.CharDevice{"infiniband_verbs": uverbs, "infiniband_mad": umad} {
		if c == nil {
			continue
		}
		dir := "sys/" + f.path + "/" + class + "/" + c.Name
		t.writeAll(dir, map[string]string{"dev": fmt.Sprintf("%d:%d", c.Major, c.Minor), "ibdev": f.rdma})
		if class == "infiniband_mad" {
			t.write(dir+"/port", "1")
		}
		t.link("sys/class/"+class+"/"+c.Name, dir)
		t.write("dev/infiniband/"+c.Name, "")
		m.announceEverywhere("add", class, dir, c.Name)
	}
}

// freeChar is the lowest number that no function has.
func (m *machine) freeChar() int {
	for number := 0; ; number++ {
		if !slices.ContainsFunc(m.functions(), func(f *function) bool { return f.place != nil && f.char == number }) {
			return number
		}
	}
}

func (m *machine) removeChars(f *function) {
	t := m.host.tree
	uverbs, umad := m.charDevices(f)
	for class, c := range map[string]*rdmanl.CharDevice{"infiniband_verbs": uverbs, "infiniband_mad": umad} {
		if c == nil {
			continue
		}
		dir := "sys/" + f.path + "/" + class + "/" + c.Name
		t.remove(dir)
		t.remove("sys/class/" + class + "/" + c.Name)
		t.remove("dev/infiniband/" + c.Name)
		m.announceEverywhere("remove", class, dir, c.Name)
	}
}

func (m *machine) announceEverywhere(action, class, dir, name string) {
	for _, n := range append([]*namespace{m.host}, m.spaces...) {
		m.announce(n, action, class, dir, map[string]string{"DEVNAME": "infiniband/" + name})
	}
}
