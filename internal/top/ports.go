package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// port is a port of a function, by itself.
type port struct {
	Row

	about subject
	pf    string // the RDMA device of its PF; its own where it is none's
	index int    // of a VF
}

// portsOf makes a row of each port that the last scrape tells of, in the order
// of their names.
func portsOf(t *timeline) []*port {
	now := t.now()
	count := map[string]int{}
	var ports []*port
	for _, about := range now.about() {
		if about.pod == (podName{}) && about.device != "" && about.port != "" {
			count[about.device]++
			ports = append(ports, &port{about: about, Row: Row{Rates: t.compare(about)}})
		}
	}
	for _, p := range ports {
		p.describe(now)
		p.Name = p.about.device
		if count[p.about.device] > 1 {
			p.Name += "/" + p.about.port
		}
	}
	return ports
}

// describe sets what is not made of counters.
func (p *port) describe(now *Scrape) {
	p.pf = p.about.device
	if info, ok := now.get(p.about, portInfo); ok {
		p.LinkLayer, p.Function = info.labels["link_layer"], info.labels["function"]
		p.Rail, p.Netdev = info.labels["rail"], info.labels["netdev"]
		p.VF = info.labels["vf_index"]
		p.index, _ = strconv.Atoi(p.VF)
		if pf := info.labels["pf_device"]; pf != "" {
			p.pf = pf
		}
	}
	device := subject{device: p.about.device}
	if info, ok := now.get(device, deviceInfo); ok {
		p.Driver = info.labels["driver"]
	}
	for _, resource := range now.subjects[device][deviceResources] {
		if resource.labels["type"] == "qp" {
			p.QueuePairs = known(resource.value)
		}
	}
	if speed, ok := now.get(p.about, portSpeed); ok {
		p.Speed = known(speed.value)
	}
	p.State = stateOf(now, p.about, portState)
	p.PhysicalState = stateOf(now, p.about, portPhysicalState)
	p.Stale = staleness(now, p.about.device)
	p.utilise()
	p.judge()
}

// stateOf returns the state of a set that is the one.
func stateOf(now *Scrape, about subject, family string) string {
	for _, p := range now.subjects[about][family] {
		if p.value == 1 {
			return p.labels["state"]
		}
	}
	return ""
}

// staleness says why the numbers of a device are old; it is empty where they
// are not.
func staleness(now *Scrape, device string) string {
	for _, p := range now.subjects[subject{device: device}][quarantined] {
		if p.value > 0 {
			return strings.TrimRight("quarantined: "+p.labels["reason"], ": ")
		}
	}
	if age := now.ages[device]; age > staleAfter {
		return fmt.Sprintf("read %s ago", age.Round(time.Second))
	}
	return ""
}

// rails makes a row of each PF with the functions on it, and of each port that
// is on no PF.
func rails(ports []*port, pods []*pod) []Row {
	users := usersOf(pods)
	byPF := map[[2]string][]*port{}
	var order [][2]string
	for _, p := range ports {
		at := [2]string{p.pf, portOnPF(ports, p)}
		if byPF[at] == nil {
			order = append(order, at)
		}
		byPF[at] = append(byPF[at], p)
		p.Pods = users[p.about.device]
	}
	rows := make([]Row, 0, len(order))
	for _, at := range order {
		rows = append(rows, rail(at[0], byPF[at])...)
	}
	return rows
}

// portOnPF returns the port of its PF that a port is on: that with its number,
// as with cards of two ports on one function, or the only one.
func portOnPF(ports []*port, p *port) string {
	var numbers []string
	for _, other := range ports {
		if other.about.device == p.pf {
			numbers = append(numbers, other.about.port)
		}
	}
	if len(numbers) == 0 || slices.Contains(numbers, p.about.port) {
		return p.about.port
	}
	return numbers[0]
}

// rail adds up the functions on a PF. Where the PF has no RDMA the functions
// stand by themselves.
func rail(pf string, functions []*port) []Row {
	slices.SortStableFunc(functions, func(a, b *port) int {
		switch pf {
		case a.about.device:
			return -1
		case b.about.device:
			return 1
		}
		return cmp.Compare(a.index, b.index)
	})
	rows := make([]Row, len(functions))
	for i, p := range functions {
		rows[i] = p.Row
	}
	if len(rows) == 1 || functions[0].about.device != pf {
		return rows
	}
	return []Row{sumUp(rows)}
}

// sumUp makes one row of the functions of a PF, which is the first: what passes
// a port is what passes its functions.
func sumUp(functions []Row) Row {
	row := functions[0]
	row.Functions, row.Pods = functions, nil
	for i := range functions {
		if i > 0 {
			row.plus(&functions[i].Rates)
		}
		row.Pods = append(row.Pods, functions[i].Pods...)
	}
	row.Pods = sorted(row.Pods)
	row.Speed = functions[0].Speed
	row.utilise()
	row.judge()
	return row
}
