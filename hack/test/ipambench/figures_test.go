package ipambench

import (
	"net/http"
	"net/netip"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTraffic(t *testing.T) {
	t.Parallel()
	traffic := &Traffic{}
	ask := func(method, path string) {
		u, err := url.Parse("https://server" + path)
		if err != nil {
			t.Fatal(err)
		}
		traffic.count(&http.Request{Method: method, URL: u})
	}
	ask(http.MethodGet, "/apis/railhead.io/v1alpha1/addressleases?watch=true")
	before := traffic.Sum()
	ask(http.MethodPut, "/apis/railhead.io/v1alpha1/addressleases/node1")
	ask(http.MethodPut, "/apis/railhead.io/v1alpha1/addressleases/node2")
	ask(http.MethodPut, "/apis/railhead.io/v1alpha1/addressleases/node1/status")
	ask(http.MethodPost, "/apis/spiderpool.spidernet.io/v2beta1/namespaces/default/spiderendpoints")
	ask(http.MethodGet, "/api/v1/nodes/node1")
	ask(http.MethodGet, "/readyz")
	sum := traffic.Sum().Since(before)
	want := map[string]int{
		"PUT addressleases": 2, "PUT addressleases/status": 1, "POST spiderendpoints": 1, "GET nodes": 1, "GET /readyz": 1,
	}
	if diff := cmp.Diff(want, sum.Requests); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := sum.Count("PUT", "addressleases"); got != 3 {
		t.Errorf("%d writes of leases, want 3", got)
	}
	if before.Count("WATCH") != 1 {
		t.Errorf("no watch in %v", before.Requests)
	}
}

func TestLowestFree(t *testing.T) {
	t.Parallel()
	ranges := []string{"10.0.0.1-10.0.0.2", "10.0.0.8-10.0.0.9"}
	taken := map[string]record{}
	for _, want := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.8", "10.0.0.9"} {
		got, err := lowestFree(ranges, taken)
		if err != nil || got.String() != want {
			t.Errorf("%v, error %v, want %s", got, err, want)
		}
		taken[want] = record{}
	}
	if got, err := lowestFree(ranges, taken); err == nil {
		t.Errorf("%v out of nothing", got)
	}
}

func TestLastOf(t *testing.T) {
	t.Parallel()
	for subnet, want := range map[string]string{
		"10.0.0.0/8": "10.255.255.255", "172.18.0.0/20": "172.18.15.255", "192.168.1.1/32": "192.168.1.1", "fd00::/64": "fd00::ffff:ffff:ffff:ffff",
	} {
		if got := lastOf(netip.MustParsePrefix(subnet)); got.String() != want {
			t.Errorf("%s: %s, want %s", subnet, got, want)
		}
	}
}
