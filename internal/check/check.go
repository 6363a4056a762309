// Package check says why RDMA does not work on a node, or works worse than it
// could: it holds what was read of the node against rules, and each rule that
// is broken gives a finding with the command that mends it.
//
// Rules are pure functions of a [Node]. The package changes nothing, needs no
// privilege beyond what reading takes, and never runs a command.
package check

import (
	"slices"
	"strings"

	"railhead/internal/inventory"
)

// Wishes are what the administrator wants of the node. What is not wished for
// is not held against the node.
type Wishes struct {
	NetNSMode string // "shared" or "exclusive"; empty for either
	LinkLayer string // of the rails: "Ethernet" or "InfiniBand"; empty for either
	VFs       int    // VFs on each PF that is a rail; 0 for any number
}

// Run holds a node against all rules. The worst findings come first; among
// equals the order is that of the rules, then of the devices.
func Run(n *Node, wishes Wishes) []Finding {
	findings := []Finding{}
	for _, rule := range rules() {
		findings = append(findings, rule(n, wishes)...)
	}
	quoteNames(findings, n.Inventory)
	slices.SortStableFunc(findings, compareFindings)
	return findings
}

// quoteNames makes commands safe to paste. The kernel lets a netdev or RDMA
// device be named so that a shell would take the name for a command, and a pod
// may name what it has.
func quoteNames(findings []Finding, s *inventory.Snapshot) {
	var unsafe []string
	note := func(name string) {
		if strings.Trim(name, safeInShell) != "" && !slices.Contains(unsafe, name) {
			unsafe = append(unsafe, name, sysctlName(name))
		}
	}
	for _, d := range s.Devices {
		for _, netdev := range d.Netdevs {
			note(netdev.Name)
		}
		if d.RDMA != nil {
			note(d.RDMA.Name)
		}
	}
	for _, name := range slices.Compact(unsafe) {
		for i := range findings {
			for k := range findings[i].Mend {
				findings[i].Mend[k] = strings.ReplaceAll(findings[i].Mend[k], name, shellQuote(name))
			}
		}
	}
}

// safeInShell are the characters that a shell leaves alone.
const safeInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:@%+=-"

func shellQuote(name string) string { return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'" }

// rule is one thing to look at.
type rule func(*Node, Wishes) []Finding

// rules lists them from the bottom up: what is below explains what is above.
func rules() []rule {
	return []rule{
		noRDMAHardware,
		driverMissing,
		moduleMissing,
		rdmaDeviceMissing,
		netnsMode,
		netnsModeAtBoot,
		linkLayerWanted,
		linkLayerDiffers,
		portDown,
		bondMemberDown,
		portWithoutNetdev,
		guidZero,
		gidMissing,
		gidTableFull,
		speedBelowCard,
		pcieBelowCard,
		mtuBelowCard,
		mtuDiffers,
		firmwareDiffers,
		verbsDeviceMissing,
		madDeviceMissing,
		connectionDeviceMissing,
		memlockLimit,
		vfsWanted,
		vfsUnbound,
		duplicateSubnet,
		reversePathFilter,
		gpuPeerMemory,
		nriOff,
		cdiOff,
		unreadable,
	}
}
