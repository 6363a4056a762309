package api

import (
	"fmt"
	"net/netip"
	"testing"

	"railhead/internal/ipam/holder"
)

// smallPool makes a pool of the first addresses of 172.16.n.0/24.
func (s *Server) smallPool(t *testing.T, n, addresses int) holder.PoolRef {
	t.Helper()
	name := fmt.Sprintf("rail%d", n)
	manifest := fmt.Sprintf(`
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {name: %[1]s}
spec: {ipVersion: 4, subnet: 172.16.%[2]d.0/24, ips: [172.16.%[2]d.1-172.16.%[2]d.%[3]d]}
`, name, n, addresses)
	s.Make(t, Objects(t, manifest)[0])
	return holder.PoolRef{Name: name, Subnet: netip.MustParsePrefix(fmt.Sprintf("172.16.%d.0/24", n))}
}
