package top

import (
	"maps"
	"slices"
)

// pod is a pod with the workload that owns it.
type pod struct {
	Row

	workload workload
}

// workload is the topmost owner of pods; the pod itself where nothing owns it.
type workload struct{ kind, namespace, name string }

func (w workload) String() string { return w.kind + " " + w.namespace + "/" + w.name }

// podsOf makes a row of each pod that the last scrape tells of.
func podsOf(t *timeline, ports []*port) []*pod {
	now := t.now()
	byName := map[podName]*pod{}
	for _, about := range now.about() {
		if about.pod == (podName{}) {
			continue
		}
		p := byName[about.pod]
		if p == nil {
			p = newPod(about.pod)
			byName[about.pod] = p
		}
		p.know(now.subjects[about])
		p.use(t, about, ports)
	}
	pods := make([]*pod, 0, len(byName))
	for _, p := range byName {
		p.finish(now)
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *pod) int { return compareNames(a.Name, b.Name) })
	return pods
}

func newPod(name podName) *pod {
	return &pod{
		Row:      Row{Name: name.namespace + "/" + name.name},
		workload: workload{kind: "Pod", namespace: name.namespace, name: name.name},
	}
}

// know takes what labels say of the pod.
func (p *pod) know(families map[string][]point) {
	for family, points := range families {
		for _, series := range points {
			if kind := series.labels["owner_kind"]; kind != "" {
				p.workload = workload{kind, series.labels["owner_namespace"], series.labels["owner_name"]}
			}
			if a := series.labels["attribution"]; a != "" {
				p.Attribution = append(p.Attribution, a)
			}
			if d := series.labels["device"]; d != "" {
				p.Devices = append(p.Devices, d)
			}
			if family == podQueuePairs {
				p.QueuePairs = p.QueuePairs.plus(known(series.value))
			}
		}
	}
}

// use adds the pod's share of a port, and what that port is like.
func (p *pod) use(t *timeline, about subject, ports []*port) {
	if about.device == "" {
		return
	}
	share := Row{Rates: t.compare(about)}
	for _, on := range ports {
		if on.about.device != about.device || about.port != "" && on.about.port != about.port {
			continue
		}
		share.Speed = most(share.Speed, on.Speed)
		p.State = worstState(p.State, on.State)
		for _, other := range ports {
			if other.about.device == on.pf {
				share.Speed = most(share.Speed, other.Speed)
				p.PortPause = most(p.PortPause, other.pauses())
			}
		}
	}
	share.utilise()
	p.plus(&share.Rates)
	p.Utilisation = most(p.Utilisation, share.Utilisation)
}

// worstState prefers a state that is not active.
func worstState(a, b string) string {
	if a == "" || a == stateActive && b != "" || b == "DOWN" {
		return b
	}
	return a
}

func (p *pod) finish(now *Scrape) {
	p.Workload = p.workload.String()
	p.Attribution, p.Devices = sorted(p.Attribution), sorted(p.Devices)
	for _, device := range p.Devices {
		if why := staleness(now, device); why != "" {
			p.Stale = device + " " + why
		}
	}
	p.judge()
}

// sorted returns each of the names once, mlx5_2 before mlx5_10.
func sorted(names []string) []string {
	slices.SortFunc(names, compareNames)
	return slices.Compact(names)
}

// usersOf tells which pods use a device.
func usersOf(pods []*pod) map[string][]string {
	users := map[string][]string{}
	for _, p := range pods {
		for _, device := range p.Devices {
			users[device] = append(users[device], p.Name)
		}
	}
	return users
}

func podRows(pods []*pod) []Row {
	rows := make([]Row, len(pods))
	for i, p := range pods {
		rows[i] = p.Row
	}
	return rows
}

// workloads adds up the pods of each workload.
func workloads(pods []*pod) []Row {
	byOwner := map[workload]*Row{}
	for _, p := range pods {
		row := byOwner[p.workload]
		if row == nil {
			row = &Row{Name: p.Workload}
			byOwner[p.workload] = row
		}
		row.plus(&p.Rates)
		row.Utilisation = most(row.Utilisation, p.Utilisation)
		row.PortPause = most(row.PortPause, p.PortPause)
		row.State = worstState(row.State, p.State)
		row.Devices = append(row.Devices, p.Devices...)
		row.Attribution = append(row.Attribution, p.Attribution...)
		row.Pods = append(row.Pods, p.Name)
		if p.Stale != "" {
			row.Stale = p.Stale
		}
	}
	rows := make([]Row, 0, len(byOwner))
	for row := range maps.Values(byOwner) {
		row.Devices, row.Attribution = sorted(row.Devices), sorted(row.Attribution)
		row.judge()
		rows = append(rows, *row)
	}
	return rows
}
