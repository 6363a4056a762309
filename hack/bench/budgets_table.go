package main

import "time"

// budget is what something may take at most.
type budget struct {
	what      string
	benchmark string // package, point, and name without Benchmark
	figure    figure
	against   string // what the floor or the peer is
	atMost    float64
}

// figure is what of a benchmark a budget is for.
type figure int

const (
	floors      figure = iota // how many times the floor
	peers                     // how many times the peer
	cpu                       // seconds of CPU time
	beside                    // the same without the floor's
	allocated                 // bytes
	core                      // percent of a core
	resident                  // bytes of a process that gives no addresses
	residentAll               // bytes of a process with everything on
)

const (
	millisecond = float64(time.Millisecond) / float64(time.Second)
	mebibyte    = 1 << 20
)

// budgets are the promises of the design, and what else we hold ourselves to. The
// node of all is one of 8 PF and 128 VF, of which 100 are in pods.
var budgets = []budget{
	{"scrape", "internal/agent.Agent/scrape", cpu, "copying the answer", 5 * millisecond},
	{"scrape, memory", "internal/agent.Agent/scrape", allocated, "", 1 * mebibyte},
	{"scrape", "internal/exporter.Scrape/plain", peers, "promhttp, as many series", 0.1},
	{"scrape, gzip", "internal/exporter.Scrape/gzip", peers, "promhttp, as many series", 0.2},
	{"render 10,200 series", "internal/exporter.Render/text, client_golang with 3 labels", peers, "client_golang", 0.1},
	{"sample, each 5 s", "internal/exporter.Sample/traffic", beside, "the driver's questions", 10 * millisecond},
	{"sample, each 15 s", "internal/exporter.Sample/errors", beside, "the driver's questions", 10 * millisecond},
	{"sample, each minute", "internal/exporter.Sample/slow", beside, "the driver's questions", 10 * millisecond},
	{"sample, all at once", "internal/exporter.Sample/all tiers", beside, "the driver's questions", 10 * millisecond},
	{"sample, 1 ms a firmware command", "internal/exporter.Firmware/1ms", floors, "113 commands", 1.25},
	{"sample and scrape", "internal/exporter.Exec", peers, "rdma, ip, ip for each pod", 0.1},
	{"read the counters of a PF, traffic", "internal/counters.Tiers/traffic", floors, "the questions alone", 1.25},
	{"read the counters of a PF, errors", "internal/counters.Tiers/errors", floors, "the questions alone", 1.5},
	{"read the counters of a PF, slow", "internal/counters.Tiers/slow", floors, "the questions alone", 1.25},
	{"whose the devices are", "internal/attribution.Refresh", floors, "a stat and a read of each", 4},
	{"who uses a device, by name", "internal/attribution.Users/present", floors, "dumps and a read of each", 4},
	{"who uses a device, and how much", "internal/attribution.Users/users", floors, "dumps and a read of each", 1.5},
	{"inventory, everything", "internal/inventory.Read/everything", floors, "10,160 bare reads", 2},
	{"files of an RDMA device", "internal/kernel/sysfs.IBDevice/floor", floors, "bare system calls", 2},
	{"files of an RDMA device", "internal/kernel/sysfs.IBDevice/library", peers, "os.ReadFile", 0.5},
	{"files of a PCI function", "internal/kernel/sysfs.PCIDevice/floor", floors, "bare system calls", 2},
	{"files of a PCI function", "internal/kernel/sysfs.PCIDevice/library", peers, "os.ReadFile", 0.75},
	{"files of counters", "internal/kernel/sysfs.Counters/floor", floors, "bare system calls", 1.25},
	{"files of counters", "internal/kernel/sysfs.Counters/library", peers, "os.ReadFile", 0.5},
	{"pod webhook, p99 of 5,000 pods, no API read", "internal/webhook.Pods", cpu, "", 5 * millisecond},
	{"railhead-cni, a call", "cmd/railhead-cni.Call", beside, "a program that says hello", 3 * millisecond},
	{"attach 8 rails and detach, as root", "hack/test/attachbench.Attach/addresses, policy routes, gateways asked", floors, "bare netlink calls", 2},
	{"agent, CPU", "internal/agent.Agent/minute", core, "", 1},
	{"agent, memory, without addresses", "internal/agent.Agent/minute", resident, "", 40 * mebibyte},
	{"agent, memory, 8 addresses a pod", "internal/agent.Agent/minute", residentAll, "", 40 * mebibyte},
}
