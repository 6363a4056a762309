package main

import "time"

// budget is what something may take at most, or has to reach at least.
type budget struct {
	what      string
	benchmark string  // package, point, and name without Benchmark
	unit      string  // of what the benchmark reports, in seconds where it reports nanoseconds
	against   string  // what the floor or the peer is
	atMost    float64 // this one
	atLeast   float64 // or this one
	// plusKept is a benchmark that reports kept-B: so much more, and what goes with
	// it, a process needs than the one that was measured.
	plusKept string
}

const (
	millisecond = float64(time.Millisecond) / float64(time.Second)
	mebibyte    = 1 << 20
)

// The benchmarks that many budgets are of.
const (
	minute      = "internal/agent.Agent/minute"
	attachRails = "hack/test/attachbench.Rails/one pod"
	attachPod   = "hack/test/attachbench.Pod/multus"
	addresses   = "hack/test/ipambench.Addresses/rate"
	sizes       = "hack/test/ipambench.Addresses/sizes"
)

// budgets are the promises of the design, and what else we hold ourselves to. The
// node of all is one of 8 PF and 128 VF, of which 100 are in pods.
var budgets = []budget{
	{what: "scrape", benchmark: "internal/agent.Agent/scrape", unit: "ours-sec", against: "copying the answer", atMost: 5 * millisecond},
	{what: "scrape, memory", benchmark: "internal/agent.Agent/scrape", unit: "ours-B", atMost: 1 * mebibyte},
	{what: "scrape", benchmark: "internal/exporter.Scrape/plain", unit: "x-peer", against: "promhttp, as many series", atMost: 0.1},
	{what: "scrape, gzip", benchmark: "internal/exporter.Scrape/gzip", unit: "x-peer", against: "promhttp, as many series", atMost: 0.2},
	{what: "render 10,200 series", benchmark: "internal/exporter.Render/text, client_golang with 3 labels", unit: "x-peer", against: "client_golang", atMost: 0.1},
	{what: "sample, each 5 s, beside the driver", benchmark: "internal/exporter.Sample/traffic", unit: "beside-floor-sec", against: "the driver's questions", atMost: 10 * millisecond},
	{what: "sample, each 15 s, beside the driver", benchmark: "internal/exporter.Sample/errors", unit: "beside-floor-sec", against: "the driver's questions", atMost: 10 * millisecond},
	{what: "sample, each minute, beside the driver", benchmark: "internal/exporter.Sample/slow", unit: "beside-floor-sec", against: "the driver's questions", atMost: 10 * millisecond},
	{what: "sample, all at once, beside the driver", benchmark: "internal/exporter.Sample/all tiers", unit: "beside-floor-sec", against: "the driver's questions", atMost: 10 * millisecond},
	{what: "sample, 1 ms a firmware command", benchmark: "internal/exporter.Firmware/1ms", unit: "x-floor", against: "113 commands", atMost: 1.25},
	{what: "sample and scrape", benchmark: "internal/exporter.Exec", unit: "x-peer", against: "rdma, ip, ip for each pod", atMost: 0.1},
	{what: "read the counters of a PF, traffic", benchmark: "internal/counters.Tiers/traffic", unit: "x-floor", against: "the questions alone", atMost: 1.25},
	{what: "read the counters of a PF, errors", benchmark: "internal/counters.Tiers/errors", unit: "x-floor", against: "the questions alone", atMost: 1.5},
	{what: "read the counters of a PF, slow", benchmark: "internal/counters.Tiers/slow", unit: "x-floor", against: "the questions alone", atMost: 1.25},
	{what: "whose the devices are", benchmark: "internal/attribution.Refresh", unit: "x-floor", against: "a stat and a read of each", atMost: 4},
	{what: "who uses a device, by name", benchmark: "internal/attribution.Users/present", unit: "x-floor", against: "dumps and a read of each", atMost: 4},
	{what: "who uses a device, and how much", benchmark: "internal/attribution.Users/users", unit: "x-floor", against: "dumps and a read of each", atMost: 1.5},
	{what: "inventory, everything", benchmark: "internal/inventory.Read/everything", unit: "x-floor", against: "10,160 bare reads", atMost: 2},
	{what: "files of an RDMA device", benchmark: "internal/kernel/sysfs.IBDevice/floor", unit: "x-floor", against: "bare system calls", atMost: 2},
	{what: "files of an RDMA device", benchmark: "internal/kernel/sysfs.IBDevice/library", unit: "x-peer", against: "os.ReadFile", atMost: 0.5},
	{what: "files of a PCI function", benchmark: "internal/kernel/sysfs.PCIDevice/floor", unit: "x-floor", against: "bare system calls", atMost: 2},
	{what: "files of a PCI function", benchmark: "internal/kernel/sysfs.PCIDevice/library", unit: "x-peer", against: "os.ReadFile", atMost: 0.75},
	{what: "files of counters", benchmark: "internal/kernel/sysfs.Counters/floor", unit: "x-floor", against: "bare system calls", atMost: 1.25},
	{what: "files of counters", benchmark: "internal/kernel/sysfs.Counters/library", unit: "x-peer", against: "os.ReadFile", atMost: 0.5},
	{what: "pod webhook, p99, no API read", benchmark: "internal/webhook.Pods", unit: "ours-sec", atMost: 5 * millisecond},
	{what: "railhead-cni, a call, beside the floor", benchmark: "cmd/railhead-cni.Call", unit: "beside-floor-sec", against: "a program that says hello", atMost: 3 * millisecond},
	{what: "attach 8 rails", benchmark: attachRails, unit: "add-x-floor", against: "bare netlink calls", atMost: 2},
	{what: "detach 8 rails, by the clock", benchmark: attachRails, unit: "del-x-wall", against: "bare netlink calls", atMost: 1.5},
	{what: "attach 8 rails each to 100 pods at once", benchmark: "hack/test/attachbench.Rails/100 pods at once", unit: "pods/s", atLeast: 100},
	{what: "ADD of a pod with eth0 and 8 rails, by the clock", benchmark: "hack/test/attachbench.Pod/plugins", unit: "add-x-wall", against: "plugins by libcni"},
	{what: "ADD of a pod with eth0 and 8 rails, by the clock", benchmark: attachPod, unit: "add-x-wall", against: "Multus, macvlan, host-local, sbr", atMost: 1. / 6},
	{what: "requests to the API server before the answer", benchmark: attachPod, unit: "early-requests", atMost: 0},
	{what: "requests to the API server, a pod with 8 rails", benchmark: attachPod, unit: "requests/pod", atMost: 2},
	{what: "addresses assigned, 100 agents", benchmark: addresses, unit: "addresses/s", atLeast: 5000},
	{what: "addresses published, 100 agents", benchmark: addresses, unit: "published/s", against: "one map in one object"},
	{what: "addresses a write of a ledger, 100 agents", benchmark: addresses, unit: "addresses/write", against: "one map in one object", atLeast: 50},
	{what: "requests of agents, a pod with 8 addresses", benchmark: addresses, unit: "requests/pod", against: "one map in one object", atMost: 2},
	{what: "pods that waited a minute in vain", benchmark: addresses, unit: "refused-pods", atMost: 0},
	{what: "pods that needed the API server despite a reserve", benchmark: "hack/test/ipambench.Addresses/reserve", unit: "needy-pods", atMost: 0},
	{what: "dearest size of a pool beside the cheapest, CPU", benchmark: sizes, unit: "x-cpu", atMost: 1.5},
	{what: "dearest size of a pool, bytes of agents", benchmark: sizes, unit: "x-agent-bytes", atMost: 1.5},
	{what: "dearest size of a pool, bytes of the controller", benchmark: sizes, unit: "x-controller-bytes", atMost: 1.5},
	{what: "agent, CPU", benchmark: minute, unit: "%core", atMost: 1},
	{what: "agent, memory, without addresses", benchmark: "hack/bench.Idle/without", unit: "resident-B", plusKept: minute, atMost: 40 * mebibyte},
	{what: "agent, memory, 8 addresses a pod", benchmark: "hack/bench.Idle/with", unit: "resident-B", plusKept: minute, atMost: 40 * mebibyte},
}

// once are the packages whose benchmarks take a minute or more, and are measured
// once.
var once = []string{"hack/bench", "hack/test/ipambench"}
