package address

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"k8s.io/client-go/rest"

	"railhead/internal/ipam/holder"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/sysfs"
)

// scrape returns the series of a service's metrics with a name, as text.
func scrape(t *testing.T, s *Service, name string) string {
	t.Helper()
	return textOfSeries(t, name, s.Collectors()...)
}

// textOfSeries returns the series of collectors with a name, as text.
func textOfSeries(t *testing.T, name string, collectors ...prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registerAll(registry, collectors); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		if f.GetName() != "railhead_addresses_"+name {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func registerAll(registry *prometheus.Registry, all []prometheus.Collector) error {
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// TestMetrics wants metrics to tell what there is and what happened, and before
// the journal was read nothing but that no pod can be served.
func TestMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(4, 3))
		f.api.Leave()
		r := f.start(t)
		wants(t, r, "ready", "railhead_addresses_ready 0")
		if text := scrape(t, r.Service, "assignments"); text != "" {
			t.Errorf("before the journal was read: %s", text)
		}
		f.api.ComeBack()
		time.Sleep(time.Minute)
		r.assign(t, f.pod("a", "rail0"))
		r.assign(t, f.pod("b", "rail0"))
		r.assign(t, f.pod("c", "rail0"))
		err := r.refused(t, f.pod("d", "rail0"))
		if err == nil {
			t.Fatal("a fourth address")
		}
		time.Sleep(time.Minute)
		wants(t, r, "ready", "railhead_addresses_ready 1")
		wants(t, r, "assignments", "railhead_addresses_assignments 3")
		wants(t, r, "used", `railhead_addresses_used{pool="rail0"} 3`)
		wants(t, r, "reserve", `railhead_addresses_reserve{pool="rail0"} 0`)
		wants(t, r, "reserve_limit", `railhead_addresses_reserve_limit{pool="rail0"} 4`)
		wants(t, r, "conflicts", `railhead_addresses_conflicts{pool="rail0"} 0`)
		wants(t, r, "unpublished", "railhead_addresses_unpublished 0")
		wants(t, r, "waiting", "railhead_addresses_waiting 0")
		wants(t, r, "assign_failures_total", `railhead_addresses_assign_failures_total{reason="short"} 1`)
		wants(t, r, "assign_duration_seconds", `railhead_addresses_assign_duration_seconds_count{waited="no"} 2`)
		wants(t, r, "assign_duration_seconds", `railhead_addresses_assign_duration_seconds_count{waited="yes"} 1`)
		wants(t, r, "publication_delay_seconds", "railhead_addresses_publication_delay_seconds_count 3")
	})
}

// TestMetricsPublish wants the time of a pod that keeps its addresses to include
// their publication, and one that is refused for want of it to be logged and
// counted as that alone.
func TestMetricsPublish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(4, 9))
		var log bytes.Buffer
		f.log = slog.New(slog.NewTextHandler(&log, nil))
		r := f.ready(t)
		r.assign(t, f.pod("a", "rail0")) // and a reserve with it
		f.api.Refuse("create "+endpointsPath, http.StatusServiceUnavailable)
		web := func(i int) holder.Request {
			request := f.pod(fmt.Sprintf("web-%d", i), "rail0")
			request.Identity = fmt.Sprintf("StatefulSet/ai/web/%d", i)
			return request
		}
		if err := r.refused(t, web(0)); !errors.Is(err, errUnpublished) {
			t.Errorf("error %v, want %v", err, errUnpublished)
		}
		wants(t, r, "assign_failures_total", `railhead_addresses_assign_failures_total{reason="unpublished"} 1`)
		wants(t, r, "assign_duration_seconds", `railhead_addresses_assign_duration_seconds_count{waited="yes"} 1`)
		synctest.Wait() // nobody writes
		if text := log.String(); !strings.Contains(text, `level=WARN msg="a pod is given no addresses" pod=ai/web-0`) {
			t.Errorf("the log says\n%s", text)
		}
		time.AfterFunc(10*time.Second, func() { f.api.Refuse("create "+endpointsPath, 0) })
		r.assign(t, web(1))
		wants(t, r, "assign_duration_seconds", `railhead_addresses_assign_duration_seconds_bucket{waited="yes",le="6.5536"} 1`)
		wants(t, r, "assign_duration_seconds", `railhead_addresses_assign_duration_seconds_count{waited="yes"} 2`)
	})
}

// TestMetricsTold wants docs/addresses.md to have a line for each metric, and
// none for others.
func TestMetricsTold(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/addresses.md")
	if err != nil {
		t.Fatal(err)
	}
	var told, has []string
	for _, row := range regexp.MustCompile(`(?m)^\| .(railhead_addresses_\w+). \| (?:gauge|counter|histogram) `).FindAllSubmatch(text, -1) {
		told = append(told, string(row[1]))
	}
	s, err := New(Config{NodeName: "n1", Kubernetes: &rest.Config{Host: "http://api.example"}, Dir: t.TempDir(), Node: node.Running(sysfs.New("/"))})
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`fqName: "(\w+)"`)
	for _, c := range s.Collectors() {
		descs := make(chan *prometheus.Desc, 100)
		c.Describe(descs)
		close(descs)
		for d := range descs {
			has = append(has, name.FindStringSubmatch(d.String())[1])
		}
	}
	slices.Sort(told)
	slices.Sort(has)
	if diff := cmp.Diff(has, told); diff != "" {
		t.Errorf("lines of docs/addresses.md (-want +got):\n%s", diff)
	}
}

func wants(t *testing.T, r *running, name, line string) {
	t.Helper()
	if text := scrape(t, r.Service, name); !strings.Contains(text, line+"\n") {
		t.Errorf("%s says\n%swant %s in it", name, text, line)
	}
}
