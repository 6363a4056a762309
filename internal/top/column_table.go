package top

import (
	"strconv"
	"strings"
)

const nameKey = "name"

var (
	allViews = []View{Devices, Pods, Workloads}
	byDevice = []View{Devices}
	byPod    = []View{Pods}
	byOwner  = []View{Workloads}
	byUser   = []View{Pods, Workloads}
)

// columns are those of all views, from left to right. The help says what a
// growing number means.
var columns = []*column{
	{key: nameKey, title: "NAME", views: allViews, isText: true, text: func(r *Row, _ Unit) string { return r.Name }},
	{
		key: "rail", title: "RAIL", width: 4, views: byDevice, rank: 5, isText: true,
		text: func(r *Row, _ Unit) string { return r.Rail },
		help: "number of the rail",
	},
	{
		key: "netdev", title: "NETDEV", width: 12, views: byDevice, rank: 20, isText: true,
		text: func(r *Row, _ Unit) string { return r.Netdev },
		help: "its network interface",
	},
	{
		key: "pods", title: "PODS", width: 4, views: byOwner, rank: 3,
		text:   func(r *Row, _ Unit) string { return strconv.Itoa(len(r.Pods)) },
		number: func(r *Row) Rate { return known(float64(len(r.Pods))) },
		help:   "pods of the workload that use RDMA here",
	},
	{
		key: "devices", title: "DEVS", width: 4, views: byUser, rank: 4,
		text:   func(r *Row, _ Unit) string { return strconv.Itoa(len(r.Devices)) },
		number: func(r *Row) Rate { return known(float64(len(r.Devices))) },
		help:   "RDMA devices in use",
	},
	{
		key: "state", title: "STATE", width: 6, views: allViews, rank: 0, isText: true,
		text: func(r *Row, _ Unit) string {
			if r.Stale != "" {
				return "stale"
			}
			return r.State
		},
		level: func(r *Row) Severity {
			switch {
			case r.isDown():
				return Critical
			case r.Stale != "":
				return Warning
			}
			return Fine
		},
		help: "of the port, the worst of those in use; stale: not read lately",
	},
	{
		key: "speed", title: "SPEED", width: 5, views: byDevice, rank: 21,
		text:   func(r *Row, u Unit) string { return u.throughput(r.Speed) },
		number: func(r *Row) Rate { return r.Speed },
		help:   "of the link",
	},
	{
		key: "rx", title: "RX", width: 5, views: allViews, rank: 1,
		text:   func(r *Row, u Unit) string { return u.throughput(r.Receive) },
		number: func(r *Row) Rate { return r.Receive },
		help:   "received; a PF with the functions on it",
	},
	{
		key: "tx", title: "TX", width: 5, views: allViews, rank: 1,
		text:   func(r *Row, u Unit) string { return u.throughput(r.Transmit) },
		number: func(r *Row) Rate { return r.Transmit },
		help:   "sent",
	},
	{
		key: "util", title: "UTIL", width: 4, views: allViews, rank: 2,
		text:   func(r *Row, _ Unit) string { return percent(r.Utilisation) },
		number: func(r *Row) Rate { return r.Utilisation },
		help:   "share of the link's speed, in the busier direction",
	},
	{
		key: "rxpkt", title: "RXPKT", width: 5, views: allViews, rank: 32,
		text: count(func(r *Row) Rate { return r.ReceivePackets }), number: func(r *Row) Rate { return r.ReceivePackets },
		help: "packets received",
	},
	{
		key: "txpkt", title: "TXPKT", width: 5, views: allViews, rank: 32,
		text: count(func(r *Row) Rate { return r.TransmitPackets }), number: func(r *Row) Rate { return r.TransmitPackets },
		help: "packets sent",
	},
	{
		key: "pause", title: "PAUSE", width: 5, views: byDevice, rank: 2,
		text: func(r *Row, _ Unit) string {
			if r.pauses().isKnown {
				return percent(r.pauses())
			}
			return scaled(r.PauseFrames)
		},
		number: func(r *Row) Rate {
			if r.pauses().isKnown {
				return r.pauses()
			}
			return r.PauseFrames
		},
		level: paused(func(r *Row) Rate { return r.pauses() }),
		help:  "time that a priority stood still; frames where no time is counted",
	},
	{
		key: "pauserx", title: "PAURX", width: 5, views: byDevice, rank: 23,
		text: func(r *Row, _ Unit) string { return percent(r.PauseReceived) }, number: func(r *Row) Rate { return r.PauseReceived },
		level: paused(func(r *Row) Rate { return r.PauseReceived }),
		help:  "paused by the switch: the fabric is full",
	},
	{
		key: "pausetx", title: "PAUTX", width: 5, views: byDevice, rank: 23,
		text: func(r *Row, _ Unit) string { return percent(r.PauseSent) }, number: func(r *Row) Rate { return r.PauseSent },
		level: paused(func(r *Row) Rate { return r.PauseSent }),
		help:  "paused the switch: this host is too slow",
	},
	{
		key: "pausefr", title: "PAUFR", width: 5, views: byDevice, rank: 24,
		text: count(func(r *Row) Rate { return r.PauseFrames }), number: func(r *Row) Rate { return r.PauseFrames },
		level: some(Watch, func(r *Row) Rate { return r.PauseFrames }),
		help:  "pause frames, both ways",
	},
	{
		key: "wait", title: "WAIT", width: 5, views: byDevice, rank: 31,
		text: count(func(r *Row) Rate { return r.TransmitWait }), number: func(r *Row) Rate { return r.TransmitWait },
		help: "InfiniBand: ticks without credits to send",
	},
	{
		key: "portpause", title: "PAUSE", width: 5, views: byUser, rank: 6,
		text: func(r *Row, _ Unit) string { return percent(r.PortPause) }, number: func(r *Row) Rate { return r.PortPause },
		level: paused(func(r *Row) Rate { return r.PortPause }),
		help:  "of the worst port in use, which others may share",
	},
	{
		key: "retrans", title: "RETR", width: 5, views: allViews, rank: 2,
		text: count(func(r *Row) Rate { return r.Retransmits }), number: func(r *Row) Rate { return r.Retransmits },
		level: func(r *Row) Severity {
			if r.RetriesExceeded.isSome() {
				return Critical
			}
			return some(Warning, func(r *Row) Rate { return r.Retransmits })(r)
		},
		help: "ack timeouts, sequence NAKs, implied NAKs, retries exceeded",
	},
	{
		key: "retries", title: "DEAD", width: 5, views: allViews, rank: 22,
		text: count(func(r *Row) Rate { return r.RetriesExceeded }), number: func(r *Row) Rate { return r.RetriesExceeded },
		level: some(Critical, func(r *Row) Rate { return r.RetriesExceeded }),
		help:  "retries exceeded: each ended a queue pair",
	},
	{
		key: "oos", title: "OOS", width: 5, views: allViews, rank: 3,
		text: count(func(r *Row) Rate { return r.OutOfSequence }), number: func(r *Row) Rate { return r.OutOfSequence },
		level: some(Watch, func(r *Row) Rate { return r.OutOfSequence }),
		help:  "packets out of sequence: lost, or overtaken with adaptive routing",
	},
	{
		key: "rnr", title: "RNR", width: 5, views: allViews, rank: 25,
		text: count(func(r *Row) Rate { return r.ReceiverNotReady }), number: func(r *Row) Rate { return r.ReceiverNotReady },
		level: some(Watch, func(r *Row) Rate { return r.ReceiverNotReady }),
		help:  "receiver-not-ready NAKs: the peer's application is slow",
	},
	{
		key: "ecn", title: "ECN", width: 5, views: byDevice, rank: 7,
		text: count(func(r *Row) Rate { return r.ECNMarked }), number: func(r *Row) Rate { return r.ECNMarked },
		level: some(Watch, func(r *Row) Rate { return r.ECNMarked }),
		help:  "packets that a switch marked as congested",
	},
	{
		key: "cnp", title: "CNP", width: 5, views: byDevice, rank: 4,
		text: count(func(r *Row) Rate { return r.cnps() }), number: func(r *Row) Rate { return r.cnps() },
		level: some(Watch, func(r *Row) Rate { return r.cnps() }),
		help:  "congestion notifications, sent and handled",
	},
	{
		key: "drop", title: "DROP", width: 5, views: byDevice, rank: 8,
		text: count(func(r *Row) Rate { return r.Discards }), number: func(r *Row) Rate { return r.Discards },
		level: some(Warning, func(r *Row) Rate { return r.Discards }),
		help:  "packets that the port dropped for lack of buffers",
	},
	{
		key: "nobuf", title: "NOBUF", width: 5, views: allViews, rank: 9,
		text: count(func(r *Row) Rate { return r.OutOfBuffer }), number: func(r *Row) Rate { return r.OutOfBuffer },
		level: some(Warning, func(r *Row) Rate { return r.OutOfBuffer }),
		help:  "packets dropped as no receive was posted: the application is slow",
	},
	{
		key: "errors", title: "ERR", width: 5, views: allViews, rank: 3,
		text: count(func(r *Row) Rate { return r.Errors }), number: func(r *Row) Rate { return r.Errors },
		level: some(Warning, func(r *Row) Rate { return r.Errors }),
		help:  "failed completions but flushes; wrong checksums and symbols; link down",
	},
	{
		key: "qps", title: "QPS", width: 5, views: allViews, rank: 26,
		text: count(func(r *Row) Rate { return r.QueuePairs }), number: func(r *Row) Rate { return r.QueuePairs },
		help: "queue pairs that exist",
	},
	{
		key: "attribution", title: "COUNTED BY", width: 10, views: byUser, rank: 40, isText: true,
		text: func(r *Row, _ Unit) string { return strings.Join(r.Attribution, ",") },
		help: "how numbers are known to be the pod's; none are where it shares a device",
	},
	{
		key: "on", title: "DEVICES", width: 16, views: byPod, rank: 42, isText: true,
		text: func(r *Row, _ Unit) string { return strings.Join(r.Devices, ",") },
		help: "RDMA devices in use",
	},
	{
		key: "workload", title: "WORKLOAD", width: 30, views: byPod, rank: 41, isText: true,
		text: func(r *Row, _ Unit) string { return r.Workload },
		help: "the topmost owner of the pod",
	},
	{
		key: "users", title: "USED BY", width: 26, views: byDevice, rank: 41, isText: true,
		text: func(r *Row, _ Unit) string { return strings.Join(r.Pods, ",") },
		help: "pods on the device",
	},
}

func count(of func(*Row) Rate) func(*Row, Unit) string {
	return func(r *Row, _ Unit) string { return scaled(of(r)) }
}

// some makes any number above 0 as bad as said.
func some(level Severity, of func(*Row) Rate) func(*Row) Severity {
	return func(r *Row) Severity {
		if of(r).isSome() {
			return level
		}
		return Fine
	}
}

// paused is bad from a share of the time on.
func paused(of func(*Row) Rate) func(*Row) Severity {
	return func(r *Row) Severity {
		switch value := of(r).value; {
		case value >= pauseWarning:
			return Warning
		case value > 0:
			return Watch
		}
		return Fine
	}
}
