package dashboards

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"railhead/hack/dashboards/boards"
	"railhead/hack/dashboards/lab"
	"railhead/hack/dashboards/promql"
)

// liveness bounds how long panels may take to have data.
const liveness = 5 * time.Minute

// liveStep is how much time passes for a simulated node from one scrape to the
// next: what its scenario does in minutes is there in seconds, and nothing of it
// goes by unseen because Prometheus or the node is late.
const liveStep = 20 * time.Second

// TestLive lets a real Prometheus scrape the agents of simulated nodes, and asks
// it what each panel of each dashboard asks, until all have data.
func TestLive(t *testing.T) {
	t.Parallel()
	program := tool(t, "prometheus")
	ctx, cancel := context.WithTimeout(t.Context(), liveness)
	defer cancel()
	prometheus := startLive(ctx, t, program)
	waiting := livePanels(t)
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		waiting = slices.DeleteFunc(waiting, func(p livePanel) bool { return p.hasData(ctx, t, prometheus) })
		if len(waiting) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			for _, p := range waiting {
				t.Errorf("dashboard %q, panel %q has no data in cluster %q: %s", p.board, p.title, p.cluster, p.query)
			}
			return
		case <-again.C:
		}
	}
}

// livePanel is a query of a panel that must have data in a cluster.
type livePanel struct {
	board, title, cluster, query string
}

func livePanels(t *testing.T) []livePanel {
	t.Helper()
	var all []livePanel
	for _, board := range boards.All() {
		for _, row := range board.Rows {
			for _, p := range row.Panels {
				cluster := p.Scenario
				if cluster == "" {
					cluster = "healthy"
				}
				for _, q := range p.Queries {
					values := map[string]string{"cluster": cluster, "__rate_interval": "10s", "__range": "1m"}
					for _, v := range board.Variables {
						if v.Name != "cluster" {
							values[v.Name] = ".*"
						}
					}
					query, unknown := promql.Expand(q.Expr, values)
					if len(unknown) > 0 {
						t.Fatalf("panel %q uses %q", p.Title, unknown)
					}
					all = append(all, livePanel{board: board.Title, title: p.Title, cluster: cluster, query: query})
				}
			}
		}
	}
	return all
}

// hasData tells whether a query has a value that is a number now.
func (p *livePanel) hasData(ctx context.Context, t *testing.T, prometheus *lab.Prometheus) bool {
	t.Helper()
	series, err := prometheus.Query(ctx, p.query, time.Now())
	if err != nil && ctx.Err() == nil {
		t.Fatalf("dashboard %q, panel %q: %v", p.board, p.title, err)
	}
	return slices.ContainsFunc(series, func(s lab.Series) bool {
		return slices.ContainsFunc(s.Points, func(point lab.Point) bool { return !math.IsNaN(point.Value) })
	})
}

// startLive starts the clusters that panels name, each node with its own time,
// and a Prometheus that scrapes them.
func startLive(ctx context.Context, t *testing.T, program string) *lab.Prometheus {
	t.Helper()
	var members []lab.Member
	for _, name := range []string{"healthy", "sick-rail"} {
		members = append(members, lab.Member{Cluster: name, Scenario: scenario(name)})
	}
	ctx, stop := context.WithCancel(ctx)
	start := time.Now()
	cluster, err := lab.StartCluster(ctx, members, t.TempDir(), start)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	group, ctx := errgroup.WithContext(ctx)
	var targets strings.Builder
	for i, n := range cluster.Nodes() {
		handler, scraped := n.Handler(), make(chan struct{}, 1)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(w, r)
			select {
			case scraped <- struct{}{}:
			default: // its time passes already
			}
		}))
		t.Cleanup(server.Close)
		fmt.Fprintf(&targets, "      - targets: [%q]\n        labels: {cluster: %q}\n", server.Listener.Addr().String(), members[i].Cluster)
		group.Go(func() error { return live(ctx, n, start, scraped) })
	}
	t.Cleanup(func() {
		stop()
		if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	prometheus, err := lab.StartPrometheus(ctx, program, dir, liveConfig(t, dir, targets.String()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := prometheus.Close(); err != nil {
			t.Error(err)
		}
	})
	return prometheus
}

// live has time pass for a node whenever it was scraped.
func live(ctx context.Context, n *lab.Node, now time.Time, scraped <-chan struct{}) error {
	for ; ; now = now.Add(liveStep) {
		if err := n.Step(ctx, now); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-scraped:
		}
	}
}

// liveConfig scrapes the targets each second, and evaluates the chart's rules
// with shorter times.
func liveConfig(t *testing.T, dir, targets string) string {
	t.Helper()
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join(rulesDir, name))
		if err != nil {
			t.Fatal(err)
		}
		fast := regexp.MustCompile(`for: \d+m`).ReplaceAllString(regexp.MustCompile(`\[\d+m\]`).ReplaceAllString(string(text), "[10s]"), "for: 0s")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(fast), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [recording.yaml, alerts.yaml]\n" +
		"scrape_configs:\n  - job_name: railhead\n    static_configs:\n" + targets
}
