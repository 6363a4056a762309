package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// worker is a pod of the printed DaemonSet.
type worker struct {
	name, node string
	agent      string            // of its node
	addresses  map[string]string // by interface
}

// workersOf are the DaemonSet's pods: one a node, in the order of the nodes'
// names.
func (c *cluster) workersOf(ctx context.Context) ([]worker, error) {
	out, err := c.run(ctx, "get", "pods", "-l", "app=rdma-tools", "--field-selector", "status.phase=Running", "--sort-by=.spec.nodeName", "-o",
		`jsonpath={range .items[*]}{.metadata.name}{"\t"}{.spec.nodeName}{"\t"}{.metadata.annotations.k8s\.v1\.cni\.cncf\.io/network-status}{"\x00"}{end}`)
	if err != nil {
		return nil, err
	}
	var all []worker
	for one := range strings.SplitSeq(strings.TrimRight(out, "\x00"), "\x00") {
		fields := strings.SplitN(one, "\t", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("pods of rdma-tools: %q: want name, node and network status", one)
		}
		w := worker{name: fields[0], node: fields[1]}
		if w.addresses, err = attached(fields[2]); err != nil {
			return nil, fmt.Errorf("pod %s: %w", w.name, err)
		}
		if w.agent, err = c.agentOn(ctx, w.node); err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("%d pods of rdma-tools are running, want one on each of two nodes", len(all))
	}
	return all, nil
}

// attached are the addresses in the annotation by which a pod is told of its
// networks.
func attached(status string) (map[string]string, error) {
	var networks []struct {
		Interface string
		IPs       []string
	}
	if err := json.Unmarshal([]byte(status), &networks); err != nil {
		return nil, fmt.Errorf("network status %q: %w", status, err)
	}
	addresses := map[string]string{}
	for _, n := range networks {
		if len(n.IPs) > 0 {
			addresses[n.Interface] = n.IPs[0]
		}
	}
	return addresses, nil
}

// The tables of eight rails. What goes over the node is the same in each.
const (
	firstTable = "ip route show table 100"
	moreTables = "for t in 101 102 103 104 105 106 107; do echo table $t:; ip route show table $t | grep -v eth0; done"
)

// looksAt are looks at a pod with eight rails, and from it at another.
func (c *cluster) looksAt(ctx context.Context, one, other worker) []look {
	inside := func(title string, command ...string) look {
		return c.byKubectl(ctx, title, append([]string{"exec", one.name, "--"}, command...)...)
	}
	return []look{
		c.byKubectl(ctx, "The printed DaemonSet on two nodes", "get", "pods", "-l", "app=rdma-tools", "-o", "wide"),
		inside("Nine interfaces: the cluster's own network, and eight rails", "ip", "-brief", "-4", "addr"),
		inside("By which rail it sends: by the one whose address it sends from", "ip", "rule"),
		inside("Rail 0: its subnet and gateway; the cluster over the node", "sh", "-c", firstTable),
		inside("The other rails, without what goes over the node", "sh", "-c", moreTables),
		inside("What is sent from no address in particular: everything by the cluster's own network", "ip", "route"),
		inside(fmt.Sprintf("Over every rail from %s to %s", one.node, other.node), "sh", "-c", pings(one, other)),
		c.byRailhead(ctx, "Why it has what it has", "explain", "pod", "default/"+one.name),
		c.byAgent(ctx, "All that is attached on "+one.node, one.agent, "attachments"),
	}
}

// pings is a command that sends a packet by each rail, and says what came back.
func pings(one, other worker) string {
	var all []string
	for rail := 1; ; rail++ {
		from, to := one.addresses[fmt.Sprintf("net%d", rail)], other.addresses[fmt.Sprintf("net%d", rail)]
		if from == "" || to == "" {
			break
		}
		all = append(all, fmt.Sprintf("ping -c 1 -W 5 -I %s %s", from, to))
	}
	return "(" + strings.Join(all, "; ") + ") | grep -e 'bytes from' -e '100% packet loss'"
}
