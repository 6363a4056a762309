package check

import (
	"cmp"
	"slices"
)

// Severity says how bad a finding is.
type Severity string

// The severities, worst first.
const (
	Error   Severity = "error"   // RDMA does not work here
	Warning Severity = "warning" // it works, but worse than it could, or not for all, or not after a reboot
	Info    Severity = "info"    // worth knowing
)

// rank orders severities, worst first.
func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Info}, s) }

// Finding is one thing that is wrong with the node, or may be.
type Finding struct {
	Severity Severity `json:"severity"`
	ID       string   `json:"id"`             // which rule found it: "port-down"
	Object   string   `json:"object"`         // what it is about: "mlx5_3 port 1 (rail 3, enp65s0np0)"
	Seen     string   `json:"seen"`           // what was read
	Why      string   `json:"why"`            // why it matters
	Mend     []string `json:"mend,omitempty"` // commands that mend it, in order; lines that start with # say what no command can
}

// Worst returns the worst severity among findings, or "" for none.
func Worst(findings []Finding) Severity {
	if len(findings) == 0 {
		return ""
	}
	return slices.MinFunc(findings, compareFindings).Severity
}

// compareFindings orders findings by severity alone, so that a stable sort
// keeps the order of the rules and devices.
func compareFindings(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) }
