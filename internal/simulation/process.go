package simulation

import (
	"fmt"
	"strconv"
	"strings"

	"railhead/internal/kernel/sysfs"
)

// addProcesses writes the processes of a pod into proc.
func (m *machine) addProcesses(r *run) {
	file := m.host.file
	if !r.pod.HostNetwork {
		file = r.space.file
	}
	for i, pid := range r.pids {
		name, environment := "pause", ""
		if i > 0 {
			name, environment = "python3", "HOSTNAME="+m.hostname(r)+"\x00"
		}
		m.addProcess(pid, name, r.begun.Milliseconds()/10, m.cgroup(r, i))
		m.host.tree.write(fmt.Sprintf("proc/%d/environ", pid), environment)
		m.host.tree.hardLink(fmt.Sprintf("proc/%d/ns/net", pid), file)
	}
	if !r.pod.HostNetwork {
		m.host.tree.hardLink("run/netns/"+r.netnsName(), file)
	}
}

// hostname is the name that a pod finds its machine to have.
func (m *machine) hostname(r *run) string {
	if r.pod.HostNetwork {
		return m.scenario.Node
	}
	return r.name
}

func (m *machine) removeProcesses(r *run) {
	for _, pid := range r.pids {
		m.host.tree.remove("proc/" + strconv.Itoa(pid))
	}
	if !r.pod.HostNetwork {
		m.host.tree.remove("run/netns/" + r.netnsName())
	}
}

// netnsName is the name that containerd gives the network of a pod.
func (r *run) netnsName() string { return "cni-" + uidOf(0, r.uid, "netns") }

// addProcess writes what proc tells of a process, started is in ticks of 10 ms.
func (m *machine) addProcess(pid int, name string, started int64, cgroup string) {
	m.host.tree.writeAll("proc/"+strconv.Itoa(pid), map[string]string{
		"comm":   name,
		"cgroup": cgroup,
		"status": fmt.Sprintf("Name:\t%[2]s\nState:\tS (sleeping)\nTgid:\t%[1]d\nNgid:\t0\nPid:\t%[1]d\nPPid:\t1\nThreads:\t1", pid, name),
		"stat": fmt.Sprintf("%[1]d (%[2]s) S 1 %[1]d %[1]d 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 %[3]d 0 0 %[4]d",
			pid, name, started, sysfs.Infinity),
	})
}

// cgroup is the text of /proc/PID/cgroup of a process of a pod: the first is in
// the container that keeps the pod, the others are in that of the pod itself.
func (m *machine) cgroup(r *run, process int) string {
	container := "sandbox"
	if process > 0 {
		container = containerName
	}
	id := containerID(r, container)
	path := fmt.Sprintf("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice/cri-containerd-%s.scope",
		strings.ReplaceAll(r.uid, "-", "_"), id)
	if m.scenario.Cgroup.Driver == cgroupFS {
		path = fmt.Sprintf("/kubepods/burstable/pod%s/%s", r.uid, id)
	}
	return m.cgroupText(path)
}

// cgroupText is what proc tells of a process that is in one cgroup: on version
// 1, in each hierarchy.
func (m *machine) cgroupText(path string) string {
	if m.scenario.Cgroup.Version == 2 {
		return "0::" + path
	}
	var lines []string
	hierarchies := []string{"rdma", "pids", "memory", "devices", "cpu,cpuacct", "name=systemd"}
	for i, controllers := range hierarchies {
		lines = append(lines, fmt.Sprintf("%d:%s:%s", len(hierarchies)-i, controllers, path))
	}
	return strings.Join(lines, "\n")
}

// containerID is the ID of a container, which has 64 digits.
func containerID(r *run, container string) string {
	var id strings.Builder
	for i := range uint64(4) {
		fmt.Fprintf(&id, "%016x", hash(i, r.uid, container))
	}
	return id.String()
}
