package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// everySecond makes the agent sample everything each second.
var everySecond = []string{
	"--metrics.interval.traffic=1s", "--metrics.interval.errors=1s", "--metrics.interval.slow=1s", "--kubernetes=off",
}

// hardwareCounters are what `rdma statistic` says of a port, by counter.
func hardwareCounters(t *testing.T, device string) map[string]uint64 {
	t.Helper()
	// Of each port one object, in which counters stand beside the port's name.
	list := JSON[[]map[string]any](t, "rdma", "-j", "statistic", "show", "link", device+"/1")
	counters := map[string]uint64{}
	for _, port := range list {
		for name, value := range port {
			if number, ok := value.(float64); ok && !slices.Contains([]string{"ifindex", "port"}, name) {
				counters[name] = uint64(number)
			}
		}
	}
	if len(counters) == 0 {
		t.Fatalf("rdma statistic has no counters of %s: %v", device, list)
	}
	return counters
}

// sysfsCounters are the same counters as sysfs has them.
func sysfsCounters(t *testing.T, device string) map[string]uint64 {
	t.Helper()
	dir := filepath.Join("/sys/class/infiniband", device, "ports/1/hw_counters")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	counters := map[string]uint64{}
	for _, f := range files {
		if f.Name() == "lifespan" {
			continue
		}
		if counters[f.Name()], err = strconv.ParseUint(ReadFile(t, filepath.Join(dir, f.Name())), 10, 64); err != nil {
			t.Error(err)
		}
	}
	return counters
}

// compareCounters waits until the agent has what the kernel has, which is at rest.
func compareCounters(t *testing.T, agent Agent, device string) {
	t.Helper()
	for source, counters := range map[string]map[string]uint64{"rdma": hardwareCounters(t, device), "sysfs": sysfsCounters(t, device)} {
		Eventually(t, func() string {
			scrape := agent.Scrape(t)
			var differ []string
			for name, want := range counters {
				got, ok := scrape.Value("rdma_"+name+"_total", "device="+device, "port=1")
				if !ok || got != float64(want) {
					differ = append(differ, fmt.Sprintf("%s: agent %v (%v), %s %d", name, got, ok, source, want))
				}
			}
			return strings.Join(differ, "; ")
		})
	}
}

// traffic sends messages from a pod to itself over a device for some seconds. During is called while it runs.
func traffic(t *testing.T, pod Pod, device string, during func()) {
	t.Helper()
	seconds := "6"
	server := pod.Start(t, "ib_write_bw", "-d", device, "-x", "1", "-s", "4096", "-D", seconds)
	Eventually(t, func() string {
		if !strings.Contains(pod.NetNS.Run(t, "ss", "-ltn"), ":18515") {
			return "ib_write_bw listening"
		}
		return ""
	})
	client := pod.Start(t, "ib_write_bw", "-d", device, "-x", "1", "-s", "4096", "-D", seconds, "127.0.0.1")
	during()
	for _, cmd := range []interface{ Wait() error }{client, server} {
		if err := cmd.Wait(); err != nil {
			t.Errorf("ib_write_bw: %v", err)
		}
	}
}

const (
	podA = "4f5e7c1a-0b1d-4c58-9d2e-111111111111"
	podB = "8a1b2c3d-4e5f-4a6b-8c7d-222222222222"
)

// sent returns the packets that a pod sent by a device.
func sent(s Scrape, device, pod string) float64 {
	value, _ := s.Value("rdma_pod_transmit_packets_total", "device="+device, "pod_name="+pod)
	return value
}

// TestSharedMetrics follows two pods that use one device one after the other.
func TestSharedMetrics(t *testing.T) {
	Require(t)
	AddVeth(t, "va", "vb")
	Run(t, "ip", "addr", "add", "192.0.2.1/24", "dev", "va")
	AddRXE(t, "rxe0", "va")
	a, b := NewPod(t, "pod-a", podA), NewPod(t, "pod-b", podB)
	agent := StartAgent(t, everySecond...)

	traffic(t, a, "rxe0", func() { seen(t, agent, podA, "rxe0") })
	compareCounters(t, agent, "rxe0")
	first := agent.Scrape(t)
	if total, _ := first.Value("rdma_port_transmit_packets_total", "device=rxe0"); total == 0 {
		t.Error("the device sent nothing")
	} else if of := sent(first, "rxe0", podA); of > total {
		t.Errorf("pod %s sent %v packets of the %v of its device", podA, of, total)
	}

	traffic(t, b, "rxe0", func() {
		seen(t, agent, podB, "rxe0")
		Eventually(t, func() string {
			if sent(agent.Scrape(t), "rxe0", podB) == 0 {
				return "packets of the second pod"
			}
			return ""
		})
		if _, still := agent.Scrape(t).Value("rdma_pod_qps", "pod_name="+podA); still {
			t.Error("the first pod has queue pairs after its processes ended")
		}
	})
	compareCounters(t, agent, "rxe0")
}

// TestSharedMetricsTogether has two pods use one device at the same time: both are told as its users, until one ends and
// the other has it alone.
func TestSharedMetricsTogether(t *testing.T) {
	Require(t)
	AddVeth(t, "va", "vb")
	Run(t, "ip", "addr", "add", "192.0.2.1/24", "dev", "va")
	AddRXE(t, "rxe0", "va")
	a, b := NewPod(t, "pod-a", podA), NewPod(t, "pod-b", podB)
	agent := StartAgent(t, everySecond...)
	endA, endB := hold(t, a, "rxe0"), hold(t, b, "rxe0")
	for _, pod := range []string{podA, podB} {
		seen(t, agent, pod, "rxe0")
		attributed(t, agent, pod, "rxe0", "shared")
	}
	endB()
	attributed(t, agent, podA, "rxe0", "sole_user")
	endA()
}

// hold has a pod hold a queue pair and memory on a device, until it is told to end.
func hold(t *testing.T, pod Pod, device string) (end func()) {
	t.Helper()
	server := pod.Start(t, "ibv_rc_pingpong", "-d", device, "-g", "1") // which waits for a client that does not come
	end = sync.OnceFunc(func() {
		_ = server.Process.Kill()
		_ = server.Wait() // it says that it was killed
	})
	t.Cleanup(end)
	return end
}

// attributed waits until a pod is told to have a device in a way.
func attributed(t *testing.T, agent Agent, pod, device, method string) {
	t.Helper()
	Eventually(t, func() string {
		if _, ok := agent.Scrape(t).Value("rdma_pod_device_info", "pod_name="+pod, "device="+device, "attribution="+method); !ok {
			return pod + " with attribution " + method
		}
		return ""
	})
}

// seen waits until a pod is known to use a device.
func seen(t *testing.T, agent Agent, pod, device string) {
	t.Helper()
	Eventually(t, func() string {
		scrape := agent.Scrape(t)
		for _, family := range []string{"rdma_pod_qps", "rdma_pod_memory_region_bytes", "rdma_pod_device_info"} {
			if value, ok := scrape.Value(family, "pod_name="+pod, "device="+device); !ok || value == 0 {
				return family + " of pod " + pod
			}
		}
		return ""
	})
}

// TestSRIOVMetrics follows devices that are moved into pods.
func TestSRIOVMetrics(t *testing.T) {
	Require(t)
	vfs := AddVFs(t, PFs(t)[0], 1)
	netdev := vfs[0].Netdev
	AddRXE(t, "rm0", netdev)
	agent := StartAgent(t, everySecond...)
	before, _ := agent.Scrape(t).Value("rdma_port_transmit_packets_total", "device=rm0")

	pod := NewPod(t, "pod-a", podA)
	Run(t, "ip", "link", "set", netdev, "netns", string(pod.NetNS))
	Run(t, "rdma", "dev", "set", "rm0", "netns", string(pod.NetNS))
	pod.NetNS.Run(t, "ip", "addr", "add", "192.0.2.1/24", "dev", netdev)
	pod.NetNS.Run(t, "ip", "link", "set", netdev, "up")
	Eventually(t, func() string {
		if link := pod.NetNS.Run(t, "rdma", "link"); !strings.Contains(link, "state ACTIVE") {
			return "rm0 active: " + link
		}
		return ""
	})
	sandbox := pod.Start(t, "sleep", "600") // what a pause process is
	traffic(t, pod, "rm0", func() {
		Eventually(t, func() string {
			if sent(agent.Scrape(t), "rm0", podA) == 0 {
				return "packets of the pod"
			}
			return ""
		})
	})
	Eventually(t, func() string {
		scrape := agent.Scrape(t)
		total, _ := scrape.Value("rdma_port_transmit_packets_total", "device=rm0")
		ofPod, _ := scrape.Value("rdma_pod_transmit_packets_total", "device=rm0", "pod_name="+podA, "attribution=exclusive")
		if ofPod == 0 || ofPod > total-before {
			return fmt.Sprintf("a share of the pod: %v of %v packets", ofPod, total-before)
		}
		return ""
	})

	if err := sandbox.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = sandbox.Wait() // it says that it was killed
	Run(t, "ip", "netns", "del", string(pod.NetNS))
	Eventually(t, func() string {
		if got := RDMADeviceOf(t, vfs[0].Address); got != "rm0" {
			return "RDMA device back in the host"
		}
		scrape := agent.Scrape(t)
		if _, still := scrape.Value("rdma_pod_info", "pod_name="+podA); still {
			return "no series of the pod"
		}
		if _, there := scrape.Value("rdma_port_transmit_packets_total", "device=rm0"); !there {
			return "series of the device"
		}
		return ""
	})
}
