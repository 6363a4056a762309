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

// show prints what the agents and Prometheus tell, and where to look next.
func show(ctx context.Context, c *cluster, m *metrics) error {
	worker, node, err := c.worker(ctx)
	if err != nil {
		return err
	}
	agent, err := c.agentOn(ctx, node)
	if err != nil {
		return err
	}
	for _, l := range []look{
		begin("Pods, and on which nodes they are", func() (string, error) {
			return c.run(ctx, "get", "pods", "-A", "-o", "wide")
		}),
		begin("RDMA devices of "+node+", by railhead devices in the agent's pod", func() (string, error) {
			return c.exec(ctx, agent, "devices", "--simulate="+scenario)
		}),
		begin("What they do, by railhead top --once", func() (string, error) {
			return c.exec(ctx, agent, "top", "--once")
		}),
		begin("By workload, by railhead top workloads --once", func() (string, error) {
			return c.exec(ctx, agent, "top", "workloads", "--once")
		}),
		{"The rails as networks, by railhead networks", func() (string, error) { return c.railhead(ctx, "networks", "-n", "rails") }},
		{"Where their addresses come from, by railhead pools", func() (string, error) { return c.railhead(ctx, "pools") }},
		{"What a pod is given that asks for all rails by one annotation (" + networks + "pod.yaml)", func() (string, error) { return c.injected(ctx) }},
		{"How mistakes are refused (" + networks + "wrong.yaml)", func() (string, error) { return c.refused(ctx) }},
		{"Some series of pod " + worker + ", in Prometheus", func() (string, error) {
			return m.ask(ctx, fmt.Sprintf(`{__name__=~"rdma_pod_(info|qps|receive_bytes_total|transmit_bytes_total)",pod_name=%q,device=~"mlx5_0|"}`, worker))
		}},
		{"Gbit/s that each workload received, by all its pods, over half a minute", func() (string, error) {
			if err := m.fill(ctx, window); err != nil {
				return "", err
			}
			return m.ask(ctx, "sum by (owner_kind, owner_namespace, owner_name) (rate(rdma_pod_receive_bytes_total[30s])) * 8 / 1e9")
		}},
	} {
		text, err := l.answer()
		if err != nil {
			return fmt.Errorf("%s: %w", l.title, err)
		}
		fmt.Fprintf(c.out, "\n# %s\n\n%s", l.title, text)
	}
	return c.pointOn(ctx, m, node)
}

// look is something to look at, which takes its time.
type look struct {
	title  string
	answer func() (string, error) // waits for it
}

// begin begins to look at once.
func begin(title string, say func() (string, error)) look {
	var text string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, err = say()
	}()
	return look{title, func() (string, error) {
		<-done
		return text, err
	}}
}

// exec runs railhead in the pod of an agent.
func (c *cluster) exec(ctx context.Context, agent string, args ...string) (string, error) {
	return c.run(ctx, append([]string{"exec", "-n", agentNamespace, agent, "--", agentProgram}, args...)...)
}

// enough is how long Prometheus may take to have what it is asked for: a few
// scrapes, of metrics that the agent reads every quarter of a minute.
const enough = 2 * time.Minute

// window is what rates are asked over. They are too low as long as Prometheus has
// not seen the agents for as long, and for as long as theirs are read apart.
const window = 30*time.Second + 15*time.Second

// fill waits until Prometheus has seen an agent for a time.
func (m *metrics) fill(ctx context.Context, window time.Duration) error {
	_, err := m.ask(ctx, fmt.Sprintf("min(timestamp(up) - min_over_time(timestamp(up)[%s:1s])) >= %d", 2*window, int(window.Seconds())))
	return err
}

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

// pointOn says where to look next.
func (c *cluster) pointOn(ctx context.Context, m *metrics, node string) error {
	agent, err := c.forward(ctx, node, "127.0.0.1:5711")
	if err != nil {
		return err
	}
	cluster, end := "go run ./hack/cluster", "make demo-down"
	if c.Dir != driver.DefaultDir {
		cluster += " --dir " + string(c.Dir)
		end = "go run ./hack/demo down --dir " + string(c.Dir)
	}
	_, err = fmt.Fprintf(c.out, `
# Where to look next

  Prometheus                      %[1]s
  metrics of %[2]s                http://%[3]s/metrics
  live, in a terminal             go run ./cmd/railhead top --agent http://%[3]s
  kubectl                         %[4]s kubectl get pods -A
  share the rails of chat-decode  %[4]s kubectl run -n default chat-decode-mine --image=localhost/railhead/tools:1 --image-pull-policy=Never
                                  (no traffic of a shared rail is one pod's: rdma_pod_info has both)
  end the job, and its series     %[4]s kubectl delete job -n research llama-pretrain
  unplug a rail                   %[4]s cut %[2]s 3
  plug it in again                %[4]s mend %[2]s 3
  what the agent may, and why     deploy/demo/agent.yaml
  all of a network               go run ./cmd/railhead networks -n rails gpu1-macvlan -o wide --kubeconfig %[6]s
  check manifests before          go run ./cmd/railhead validate -f %[7]swrong.yaml
  what its metrics mean           docs/metrics.md, docs/dashboards.md, docs/alerts.md
  end the demo                    %[5]s
`, m.url, node, agent, cluster, end, c.Dir.Kubeconfig(), networks)
	return err
}
