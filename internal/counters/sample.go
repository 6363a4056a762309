package counters

// Kind is what a family's values are.
type Kind uint8

// The kinds of a family.
const (
	Counter Kind = iota // only grows; exported with _total
	Gauge
	Info      // always 1; its labels tell
	Unknown   // a counter of the kernel that the table does not know
	Histogram // only of the exporter itself
)

// Tier says how often a family is worth reading.
type Tier uint8

// The tiers, most often first.
const (
	Traffic Tier = iota // bytes and packets
	Errors              // errors, congestion, states
	Slow                // optics, PCIe, configuration, resources
	Tiers               // how many there are
)

// Scope is what a family's values are about.
type Scope uint8

// The scopes of a family.
const (
	Function     Scope = iota // a PF, VF or SF: labels device, port, netdev
	PhysicalPort              // the port of a card, which its functions share: labels device, port, netdev of the PF
	WholeDevice               // an RDMA device: label device
	WholeNode                 // no such label
)

// Family is all that is exported under one name.
type Family struct {
	Name   string   // rdma_out_of_buffer; a Counter is exported as Name_total
	Kind   Kind     //
	Unit   string   // "bytes", "seconds", "packets", "requests", …; empty where there is none
	Help   string   // one sentence on what it really means
	Labels []string // its own, beyond those of its Scope, in order
	Scope  Scope    //
	Tier   Tier     //
	Pod    string   // the family of a pod's share, rdma_pod_out_of_buffer; empty where a pod has none
}

// Label is a label of a series.
type Label struct{ Name, Value string }

// Series is one time series of a device. A reader returns the same pointer for
// the same series each time, so that what is derived from it can be kept.
type Series struct {
	Family *Family
	Labels []Label // all of them, those of the Scope first
	Scale  float64 // a value times this is in the family's unit; 1 for most
}

// Sample is what a series was at one moment. A counter narrower than 64 bits
// in the kernel is continued here, so that it does not wrap.
type Sample struct {
	Series *Series
	Value  uint64
}
