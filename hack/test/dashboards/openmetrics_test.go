package dashboards

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"railhead/hack/dashboards/lab"
)

// TestOpenMetrics reads what agents of simulated nodes serve with Prometheus' own
// parser, as a Prometheus that asks for OpenMetrics does.
func TestOpenMetrics(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"healthy", "infiniband", "vendors"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Unix(1770000000, 0)
			cluster, err := lab.StartCluster(t.Context(), []lab.Member{{Scenario: scenario(name)}}, t.TempDir(), now)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := cluster.Close(); err != nil {
					t.Error(err)
				}
			})
			if err := cluster.Step(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			for _, n := range cluster.Nodes() {
				request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
				request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
				answer := httptest.NewRecorder()
				n.Handler().ServeHTTP(answer, request)
				if series := readOpenMetrics(t, answer.Body.Bytes()); series < 500 {
					t.Errorf("%s serves %d series, want 500 at least", n.Name(), series)
				}
			}
		})
	}
}

// readOpenMetrics counts the series of an exposition, and fails where it is none.
func readOpenMetrics(t *testing.T, text []byte) (series int) {
	t.Helper()
	parser := textparse.NewOpenMetricsParser(text, labels.NewSymbolTable())
	for {
		switch entry, err := parser.Next(); {
		case errors.Is(err, io.EOF):
			return series
		case err != nil:
			t.Fatal(err)
		case entry == textparse.EntrySeries:
			series++
		}
	}
}
