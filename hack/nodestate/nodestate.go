// Package nodestate reads what a node's kernel and disk have of pods' networks,
// so that a test can compare what was before with what is after.
package nodestate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// State is what there is, by what it is: "links", "addresses", "rules",
// "routes", "neighbours", "tables" of nftables, "files", and Agent. Lines are
// sorted, and say nothing that changes by itself: no indexes, no times.
type State map[string][]string

// Agent is the files that an agent has for itself as long as it is there.
const Agent = "files of the agent"

// look is one thing to look at.
type look struct {
	name    string
	command string         // of a shell on the node
	without *regexp.Regexp // what of a line changes by itself
}

// looks are all of them. Neighbours that the kernel learns by itself come and
// go; those that somebody set stay until somebody takes them away. A link-local
// address is tentative at first, and has its local route once it is not. Of the files
// of the runtime's leases, one remembers the last address that was given.
// Directories for an agent are made by the kubelet, which leaves them.
func looks() []look {
	return []look{
		{"links", "ip -o link show", regexp.MustCompile(`^\d+: |(state|mtu|qlen|qdisc) \S+ |<[^>]*> |link-netnsid \d+|@if\d+`)},
		{"addresses", "ip -o addr show", regexp.MustCompile(`^\d+: |\\.*$| tentative\b`)},
		{"rules", "ip -4 rule; ip -6 rule", nil},
		{"routes", "ip -4 route show table all; ip -6 route show table all", regexp.MustCompile(`expires \S+|linkdown|^(local|anycast) fe80:.* proto kernel .*`)},
		{"neighbours", "ip -4 neigh show nud permanent; ip -6 neigh show nud permanent", nil},
		{"tables", "nft list tables | grep -i railhead || true", nil},
		{"files", "find /opt/cni /etc/cni /var/lib/cni /run/netns 2>/dev/null || true", nil},
		{Agent, "find /var/lib/railhead /run/railhead ! -type d 2>/dev/null || true", nil},
	}
}

// Read asks a node, by a function that runs a command there and returns what it
// prints.
func Read(run func(command ...string) (string, error)) (State, error) {
	s := State{}
	for _, l := range looks() {
		out, err := run("sh", "-c", l.command)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", l.name, l.command, err)
		}
		s[l.name] = lines(out, l.without)
	}
	return s, nil
}

// lines are those of a text, sorted and without what changes by itself.
func lines(text string, without *regexp.Regexp) []string {
	var all []string
	for line := range strings.Lines(text) {
		if without != nil {
			line = without.ReplaceAllString(strings.TrimSpace(line), "")
		}
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}
