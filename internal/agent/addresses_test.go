package agent

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"railhead/internal/exporter"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/sysfs"
)

// TestAddresses wants pods to be given addresses where the agent is to, and its
// metrics to say whether they can be.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]bool{"": false, filepath.Join(t.TempDir(), "addresses"): true} {
		a, err := New(Config{
			Node: node.Running(sysfs.New(t.TempDir())), NodeName: "n1", Kubernetes: &rest.Config{Host: "http://api.example"}, AddressesDir: dir,
			Exporter: exporter.Config{Intervals: exporter.DefaultIntervals()},
		})
		if err != nil {
			t.Fatal(err)
		}
		if (a.addresses != nil) != want {
			t.Errorf("directory %q: the agent gives addresses: %v, want %v", dir, !want, want)
		}
		response := httptest.NewRecorder()
		a.Handler().ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		if strings.Contains(response.Body.String(), "\nrailhead_addresses_ready 0\n") != want {
			t.Errorf("directory %q: it does not fit that the metrics are\n%s", dir, response.Body)
		}
		if err := a.reader.Close(); err != nil {
			t.Error(err)
		}
	}
}
