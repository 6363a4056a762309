package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"railhead/hack/cluster/driver"
)

// show prints what there is to see, and where to look next.
func show(ctx context.Context, c *cluster, m *metrics) error {
	pods, err := c.workersOf(ctx)
	if err != nil {
		return err
	}
	one, other := pods[0], pods[1]
	fmt.Fprintf(c.out, "\n# What is typed below, you can type\n\n$ alias kubectl='%s kubectl'\n$ export KUBECONFIG=%s\n", c.self(), c.Dir.Kubeconfig())
	measured := []look{ // which takes a while
		begin(c.byAgent(ctx, "RDMA devices of "+one.node, one.agent, "devices", "--simulate="+scenario)),
		begin(c.byAgent(ctx, "What they do", one.agent, "top", "--once")),
		begin(c.byAgent(ctx, "By workload", one.agent, "top", "workloads", "--once")),
	}
	if err := c.looks(c.looksAt(ctx, one, other)); err != nil {
		return err
	}
	if err := c.looks(measured); err != nil {
		return err
	}
	if err := c.looks(c.looksAtNetworks(ctx)); err != nil {
		return err
	}
	if err := c.looks(m.looks(ctx, one)); err != nil {
		return err
	}
	return c.pointOn(ctx, m, one)
}

// looksAtNetworks are looks at what the controller makes of what users write.
func (c *cluster) looksAtNetworks(ctx context.Context) []look {
	return []look{
		c.byRailhead(ctx, "The rails as networks", "networks", "-n", networksNS),
		c.byRailhead(ctx, "Where their addresses come from", "pools"),
		{"What a pod is given that asks for all rails by one annotation", typed("kubectl", injected()), func() (string, error) { return c.run(ctx, injected()...) }},
		{"How mistakes are refused", "kubectl apply -f " + networks + "wrong.yaml", func() (string, error) { return c.refused(ctx) }},
	}
}

// looks are looks at what Prometheus has.
func (m *metrics) looks(ctx context.Context, pod worker) []look {
	series := fmt.Sprintf(`{__name__=~"rdma_pod_(info|qps|receive_bytes_total|transmit_bytes_total)",pod_name=%q,device=~"mlx5_0|"}`, pod.name)
	return []look{
		{"Some series of pod " + pod.name + ", in Prometheus", "", func() (string, error) { return m.ask(ctx, series) }},
		{"How long attaching took, in milliseconds, by step: the mean on all nodes, in Prometheus", "", func() (string, error) { return m.ask(ctx, attachTimes) }},
		{"Gbit/s that each workload received, by all its pods, over half a minute", "", func() (string, error) {
			if _, err := m.ask(ctx, isFull); err != nil {
				return "", err
			}
			return m.ask(ctx, received)
		}},
	}
}

// attachTimes asks how long attachments took.
const attachTimes = `round(sum by (step) (railhead_attach_duration_seconds_sum) / sum by (step) (railhead_attach_duration_seconds_count) * 1000, 0.1)`

// enough bounds how long Prometheus may take to have what it is asked for. That takes
// a few scrapes, of metrics that the agent reads every quarter of a minute.
const enough = 10 * time.Minute

// received asks for the rates of the demo's three workloads.
const received = `sum by (owner_kind, owner_namespace, owner_name) (rate(rdma_pod_receive_bytes_total[30s])) * 8 / 1e9`

// isFull has an answer once each node's agent was seen for the 30 s that rates are
// asked over and the 15 s for which what it serves may be old, and all three workloads
// received something meanwhile. Before, rates are too low.
const isFull = `min(timestamp(up) - min_over_time(timestamp(up)[90s:1s])) >= 45 and count(` + received + ` > 0) >= 3`

// ask returns the series of an answer, a line each, once there are some.
func (m *metrics) ask(ctx context.Context, query string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, enough)
	defer cancel()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		answer, _, err := m.Query(ctx, query, time.Now())
		if err != nil {
			return "", err
		}
		if series, ok := answer.(model.Vector); ok && len(series) > 0 {
			return lines(series), nil
		}
		select {
		case <-ctx.Done():
			return "", errors.Join(ctx.Err(), fmt.Errorf("no series for %s", query))
		case <-again.C:
		}
	}
}

func lines(series model.Vector) string {
	all := make([]string, 0, len(series))
	for _, s := range series {
		all = append(all, fmt.Sprintf("%s %s\n", s.Metric, s.Value))
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// self is how hack/cluster is run for this cluster.
func (c *cluster) self() string {
	if c.Dir == driver.DefaultDir {
		return "go run ./hack/cluster"
	}
	return "go run ./hack/cluster --dir " + string(c.Dir)
}

// pointOn says where to look next.
func (c *cluster) pointOn(ctx context.Context, m *metrics, pod worker) error {
	agent, err := c.forward(ctx, pod.node, "127.0.0.1:5711")
	if err != nil {
		return err
	}
	end := "make demo-down"
	if c.Dir != driver.DefaultDir {
		end = "go run ./hack/demo down --dir " + string(c.Dir)
	}
	_, err = fmt.Fprintf(c.out, `
# Where to look next

  Prometheus                      %[1]s
  metrics of %[2]s                http://%[3]s/metrics
  live, in a terminal             go run ./cmd/railhead top --agent http://%[3]s
  end the pods with eight rails   kubectl delete daemonset rdma-tools
  a rail's gateway down           %[4]s exec fabric ip addr del 172.16.13.254/24 dev rail2
  what a new pod says of that     kubectl delete pod %[7]s; kubectl get events --field-selector=reason=RailheadAttachFailed
  and up again                    %[4]s exec fabric ip addr add 172.16.13.254/24 dev rail2
  share the rails of chat-decode  kubectl run -n default chat-decode-mine --image=localhost/railhead/tools:1 --image-pull-policy=Never
                                  (no traffic of a shared rail is one pod's: rdma_pod_info has both)
  end the job, and its series     kubectl delete job -n research llama-pretrain
  unplug a rail                   %[4]s cut %[2]s 3
  plug it in again                %[4]s mend %[2]s 3
  what the agent may, and why     deploy/railhead-agent.yaml
  what of that differs here       deploy/demo/kustomization.yaml
  all of a network                go run ./cmd/railhead networks -n %[8]s gpu1-macvlan -o wide
  check manifests before          go run ./cmd/railhead validate -f %[6]swrong.yaml
  what its metrics mean           docs/metrics.md, docs/dashboards.md, docs/alerts.md
  end the demo                    %[5]s
`, m.url, pod.node, agent, c.self(), end, networks, pod.name, networksNS)
	return err
}
