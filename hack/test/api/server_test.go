package api

import (
	"strings"
	"testing"
)

// TestServer shows that the harness itself works: the API server serves our
// kinds, kubectl reaches it, and the log has what was written.
func TestServer(t *testing.T) {
	s := Exclusive(t)
	said := s.MustApply(t, `
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderReservedIP
metadata: {name: gateways}
spec: {ips: [10.0.0.1]}
`)
	if want := "spiderreservedip.spiderpool.spidernet.io/gateways created\n"; said.Stdout != want {
		t.Errorf("kubectl printed %q, want %q", said.Stdout, want)
	}
	counts := CountWrites(s.Writes(t, "admin"))
	if counts["create spiderreservedips//gateways"] != 1 {
		t.Errorf("logged: %v", counts)
	}
	if out := s.Kubectl(t, "", "get", "sr").Stdout; !strings.Contains(out, "gateways") {
		t.Errorf("kubectl get sr: %q", out)
	}
}
