package cases

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// rounds is how often a namespace is made to end: alone, and in each way with the agent.
const rounds = 8

// interval is how often the agent samples here. An agent that kept a namespace alive until it samples again would keep it
// for half of that, as a median.
const interval = 3 * time.Second

// pinBound is how much longer a namespace may be kept alive because of the agent: a busy machine is far below it, and half
// an interval far above.
const pinBound = interval / 4

// TestSRIOVNamespacesEnd wants network namespaces with devices to end when their last process does, as soon as they do
// without an agent: while the agent looks for devices that have just come there, and when it reads them each interval.
//
// What counts is the moment at which nothing keeps a namespace alive any more. The return of its devices is the
// kernel's work from then on; that it comes late on a busy machine, of which the agent is a part, says nothing of what
// the agent holds.
func TestSRIOVNamespacesEnd(t *testing.T) {
	Require(t)
	e := ending{devices: map[string]VF{}, trace: TraceNetNS(t)}
	for i, vf := range AddVFs(t, PFs(t)[0], 3) { // which take the agent three times as long to read as one
		name := fmt.Sprintf("rn%d", i)
		AddRXE(t, name, vf.Netdev)
		e.devices[name] = vf
	}
	alone := e.median(t, "without an agent", func(string, int) {})
	agent := StartAgent(t, "--metrics.interval.traffic="+interval.String(), "--metrics.interval.errors="+interval.String(),
		"--metrics.interval.slow="+interval.String(), "--kubernetes=off")
	for _, tt := range []struct {
		name string
		wait func(pod string, round int)
	}{
		{"while the agent looks for the devices", func(string, int) { awaitView(t, agent) }},
		{"while the agent reads the devices", func(pod string, round int) {
			for device := range e.devices {
				attributed(t, agent, pod, device, "exclusive")
			}
			time.Sleep(time.Duration(round) * interval / rounds) // at moments that are spread over its interval
		}},
	} {
		if held := e.median(t, tt.name, tt.wait); held > alone+pinBound {
			t.Errorf("%s, namespaces outlast their processes by %s, and by %s without it (medians)", tt.name, held, alone)
		}
	}
	agent.Scrape(t) // it is still there
}

// awaitView waits until the agent has opened another namespace's view of sysfs, the root of a mount that is nowhere, to
// look for devices in its files.
func awaitView(t *testing.T, agent Agent) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", agent.PID)
	Eventually(t, func() string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if target, err := os.Readlink(filepath.Join(dir, entry.Name())); err == nil && target == "/" {
				return ""
			}
		}
		return "a view of sysfs in the agent"
	})
}

// ending makes namespaces with devices end.
type ending struct {
	devices map[string]VF // by the name of the RDMA device on it
	trace   NetNSTrace
	pods    int // so far
}

// median is for how long namespaces that only a process keeps alive outlast it. Each round waits, after the devices'
// arrival, for the moment at which its process is ended.
func (e *ending) median(t *testing.T, when string, wait func(pod string, round int)) time.Duration {
	t.Helper()
	var held, returned []time.Duration
	for round := range rounds {
		e.pods++
		pod := fmt.Sprintf("00000000-0000-4000-8000-%012d", e.pods)
		process := e.start(t, pod)
		wait(pod, round)
		began := time.Now()
		e.trace.Begin(t)
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = process.Wait() // it says that it was killed
		held = append(held, e.trace.Held(t))
		e.awaitReturn(t)
		returned = append(returned, time.Since(began))
	}
	slices.Sort(held)
	slices.Sort(returned)
	t.Logf("%s, namespaces outlast their processes by %s; the devices are back after %s", when, held, returned)
	return held[rounds/2]
}

// start starts the process of a pod in a namespace that nothing else keeps alive, and moves the devices there.
func (e *ending) start(t *testing.T, pod string) *exec.Cmd {
	t.Helper()
	const script = `echo $$ > "$0/cgroup.procs" && exec unshare --net sleep 600`
	process := exec.CommandContext(t.Context(), "sh", "-c", script, podCgroup(t, pod))
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	host, namespace := ReadLink(t, "/proc/self/ns/net"), fmt.Sprintf("/proc/%d/ns/net", process.Process.Pid)
	Eventually(t, func() string {
		if ReadLink(t, namespace) == host {
			return "a namespace of its own"
		}
		return ""
	})
	for device, vf := range e.devices {
		Run(t, "ip", "link", "set", vf.Netdev, "netns", namespace)
		Run(t, "rdma", "dev", "set", device, "netns", namespace)
	}
	return process
}

// awaitReturn waits until the devices are back in the host.
func (e *ending) awaitReturn(t *testing.T) {
	t.Helper()
	Eventually(t, func() string {
		for device, vf := range e.devices {
			if RDMADeviceOf(t, vf.Address) != device || NetdevOf(t, vf.Address) == "" {
				return device + " back in the host"
			}
		}
		return ""
	})
}
