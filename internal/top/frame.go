package top

import (
	"cmp"
	"slices"
	"time"
)

// Severity says how bad a row is.
type Severity string

// The severities, best first.
const (
	Fine     Severity = "ok"
	Watch    Severity = "watch"    // congestion control at work, reordering
	Warning  Severity = "warning"  // pauses, retransmissions, drops, errors
	Critical Severity = "critical" // a port that is not active, retries exceeded
)

// Frame is what one moment looks like. It is immutable.
type Frame struct {
	At        time.Time `json:"at"`
	Seconds   float64   `json:"seconds"` // that the events were counted for; 0 in the first frame, which has no rates
	Devices   []Row     `json:"devices"`
	Pods      []Row     `json:"pods"`
	Workloads []Row     `json:"workloads"`

	isLocal bool // no agent told it
}

// Row is a port of a device with the functions on it, a pod, or a workload.
type Row struct {
	Name          string   `json:"name"` // mlx5_0, mlx5_0/2, namespace/pod, Kind namespace/name
	Severity      Severity `json:"severity"`
	State         string   `json:"state,omitempty"` // of the port; the worst of those that a pod uses
	PhysicalState string   `json:"physical_state,omitempty"`
	LinkLayer     string   `json:"link_layer,omitempty"`
	Function      string   `json:"function,omitempty"` // pf, vf, sf
	VF            string   `json:"vf,omitempty"`       // its number
	Netdev        string   `json:"netdev,omitempty"`
	Rail          string   `json:"rail,omitempty"`
	Driver        string   `json:"driver,omitempty"`
	Attribution   []string `json:"attribution,omitempty"` // how a pod's numbers are known to be its own
	Workload      string   `json:"workload,omitempty"`    // of a pod
	Devices       []string `json:"devices,omitempty"`     // that a pod or workload uses
	Pods          []string `json:"pods,omitempty"`        // of a workload, or that use a device
	Stale         string   `json:"stale,omitempty"`       // why the numbers are not those of now
	Rates
	PortPause Rate  `json:"port_pause_ratio,omitzero"` // of the ports that a pod uses, which it may share
	Functions []Row `json:"functions,omitempty"`       // of a PF with VFs or SFs: it and them, each by itself
}

// newFrame makes rows of what a timeline tells.
func newFrame(t *timeline) *Frame {
	now := t.now()
	ports := portsOf(t)
	pods := podsOf(t, ports)
	f := &Frame{
		At:        now.At,
		Seconds:   now.At.Sub(t.scrapes[0].At).Seconds(),
		Devices:   rails(ports, pods),
		Pods:      podRows(pods),
		Workloads: workloads(pods),
		isLocal:   now.isFresh,
	}
	for _, rows := range [][]Row{f.Devices, f.Pods, f.Workloads} {
		slices.SortFunc(rows, worstFirst)
	}
	return f
}

// worstFirst orders rows by their severity, then by what is wrong with them;
// among those that are fine the busiest is first.
func worstFirst(a, b Row) int {
	return cmp.Or(
		cmp.Compare(b.Severity.rank(), a.Severity.rank()),
		compareBools(b.isDown(), a.isDown()),
		cmp.Compare(b.trouble(), a.trouble()),
		cmp.Compare(b.pauses().value, a.pauses().value),
		cmp.Compare(b.OutOfSequence.value+b.cnps().value, a.OutOfSequence.value+a.cnps().value),
		cmp.Compare(b.Utilisation.value, a.Utilisation.value),
		compareNames(a.Name, b.Name),
	)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (s Severity) rank() int { return slices.Index([]Severity{Fine, Watch, Warning, Critical}, s) }

// trouble is how many things go wrong each second.
func (r *Row) trouble() float64 {
	return r.Retransmits.value + r.Errors.value + r.Discards.value + r.OutOfBuffer.value
}

// pauseWarning is the part of the time that a port may stand still.
const pauseWarning = 0.01

// judge sets the severity from what the row has.
func (r *Row) judge() {
	switch {
	case r.isDown(), r.RetriesExceeded.isSome():
		r.Severity = Critical
	case r.trouble() > 0, r.pauses().value >= pauseWarning:
		r.Severity = Warning
	case r.PauseFrames.isSome(), r.pauses().isSome(), r.OutOfSequence.isSome(), r.ReceiverNotReady.isSome(),
		r.ECNMarked.isSome(), r.cnps().isSome(), r.Stale != "":
		r.Severity = Watch
	default:
		r.Severity = Fine
	}
}

// isDown tells whether a port that should carry traffic cannot. A VF that
// nobody uses is down too.
func (r *Row) isDown() bool {
	isSpare := r.Function == "vf" || r.Function == "sf"
	return r.State != "" && r.State != stateActive && !isSpare
}

const stateActive = "ACTIVE"

// compareNames orders mlx5_2 before mlx5_10.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		x, restA := chunk(a)
		y, restB := chunk(b)
		if isDigit(x[0]) && isDigit(y[0]) && len(x) != len(y) {
			return cmp.Compare(len(x), len(y))
		}
		if x != y {
			return cmp.Compare(x, y)
		}
		a, b = restA, restB
	}
	return cmp.Compare(len(a), len(b))
}

// chunk cuts a number, or what is none, off the start of a name.
func chunk(name string) (first, rest string) {
	end := 1
	for end < len(name) && isDigit(name[end]) == isDigit(name[0]) {
		end++
	}
	return name[:end], name[end:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
