package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/hack/cluster/testcluster"
	"railhead/hack/nodestate"
)

// shape is how a pod's network looks from inside, with names for the addresses
// that are this pod's, its node's or its time's.
func (c *cluster) shape(t *testing.T, ns string, p attachedPod) string {
	t.Helper()
	c.linksUp(t, ns, p)
	commands := []string{"ip -o -4 addr", "ip -o link", "ip rule"}
	for table := 99; table <= 107; table++ {
		commands = append(commands, fmt.Sprint("ip route show table ", table))
	}
	commands = append(commands, "ip route", "ip neigh show nud permanent")
	var text strings.Builder
	for _, command := range commands {
		lines := strings.Split(strings.TrimSpace(c.named(p, c.Exec(t, ns, p.name, strings.Fields(command)...))), "\n")
		slices.Sort(lines) // nodes differ in what comes first
		fmt.Fprintf(&text, "$ %s\n%s\n", command, strings.Join(lines, "\n"))
	}
	return text.String()
}

// linksUp waits until each interface of a pod is in state UP. One that carries
// packets is in state UNKNOWN until the kernel, once a second, looks at links
// that have changed (net/core/link_watch.c).
func (c *cluster) linksUp(t *testing.T, ns string, p attachedPod) {
	t.Helper()
	testcluster.Eventually(t, func() string {
		for name := range p.addresses {
			if link := c.Exec(t, ns, p.name, "ip", "-o", "link", "show", "dev", name); !strings.Contains(link, " state UP ") {
				return "the state UP of " + link
			}
		}
		return ""
	})
}

// named puts names in the place of what differs from pod to pod.
func (c *cluster) named(p attachedPod, text string) string {
	replace := func(address, name string) {
		text = regexp.MustCompile(regexp.QuoteMeta(address)+`\b`).ReplaceAllString(text, name)
	}
	for name, addresses := range p.addresses {
		for _, a := range addresses {
			replace(a, "<"+name+">")
		}
	}
	for _, n := range c.Plan().Nodes {
		node, pods := "<node>", "<pods>"
		if n.Name != p.node {
			node, pods = "<other node>", "<other pods>"
		}
		for i := range n.Host {
			replace(n.Host[i].Addr().String(), node)
			replace(n.Pods[i].String(), pods)
			replace(n.Pods[i].Addr().Next().String(), "<gateway of pods>")
		}
	}
	for _, r := range [][2]string{
		{`(?m)^\d+: (\w+)(@if\d+)?`, "$1"}, // the number of an interface, and of its other end
		{`brd [\d.]+ scope global eth0`, "brd <brd> scope global eth0"},
		{`[0-9a-f]{2}(:[0-9a-f]{2}){5}\b`, "<mac>"},  // hardware addresses
		{`link-netnsid \d+`, "link-netnsid <n>"},     // a number of the namespace
		{`\\? +valid_lft \S+ preferred_lft \S+`, ""}, // forever
		{`(?m)[ \t]+$`, ""},                          // how columns are filled
		{`[ \t]+`, " "},                              // likewise
		{`(?m)^(\S+ .*)\\ ?(link/\S+.*)$`, "$1 $2"},  // two lines in one
		{`qlen \d+`, "qlen <n>"},                     // of the parent
	} {
		text = regexp.MustCompile(r[0]).ReplaceAllString(text, r[1])
	}
	return text
}

// settled is what there is on the nodes once what earlier tests deleted has gone:
// no pods are there but the cluster's own and Railhead's, each has its sandbox and its
// link, and nodes say the same twice.
func (c *cluster) settled(t *testing.T) map[string]nodestate.State {
	t.Helper()
	testcluster.Eventually(t, func() string {
		out := c.Kubectl(t, "get", "pods", "-A", "--no-headers",
			"--field-selector=metadata.namespace!=kube-system,metadata.namespace!=railhead-system")
		if out != "" {
			return "the end of\n" + out
		}
		return ""
	})
	var last map[string]nodestate.State
	testcluster.Eventually(t, func() string {
		before := last
		last = c.nodes(t)
		for node, s := range last { // kubelets take sandboxes away after pods have gone
			for _, found := range []int{count(s["files"], "/run/netns/cni-"), count(s["links"], "veth")} {
				if diff := testcluster.Missing("sandboxes on "+node, fmt.Sprint(found), fmt.Sprint(c.podsOn(t, node))); diff != "" {
					return diff
				}
			}
		}
		return cmp.Diff(before, last)
	})
	return last
}

// count counts the lines that begin with a text.
func count(lines []string, prefix string) (n int) {
	for _, line := range lines {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// podsOn counts a node's pods that have networks of their own.
func (c *cluster) podsOn(t *testing.T, node string) int {
	t.Helper()
	out := c.Kubectl(t, "get", "pods", "-A", "--field-selector=spec.nodeName="+node, "-o", `jsonpath={range .items[*]}{.spec.hostNetwork}{"\n"}{end}`)
	return strings.Count(out, "\n") - strings.Count(out, "true\n")
}

// withoutAgents is the state of nodes without what agents have for themselves.
func withoutAgents(nodes map[string]nodestate.State) map[string]nodestate.State {
	for _, s := range nodes {
		delete(s, nodestate.Agent)
	}
	return nodes
}
