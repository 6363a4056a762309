package address

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"railhead/internal/ipam/granter"
)

// TestMetrics wants what rounds report, and no series of pools from a replica
// that does not lead.
func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	m, err := newMetrics(registry, func(pool string) int64 { return int64(len(pool)) })
	if err != nil {
		t.Fatal(err)
	}
	m.round(granter.Report{Granted: 3, LedgerWrites: 1, LeaseWrites: 2, Pools: map[string]granter.PoolReport{
		"rail0": {Total: 100, Held: 30, Free: 60, Reserve: 5, Quarantined: 4, Pinned: 7, Parked: 6, Short: 2, Recalled: 1},
	}}, nil, 3*time.Millisecond)
	m.round(granter.Report{Returned: 2, Quarantined: 1, Conflicts: 1, Pools: map[string]granter.PoolReport{
		"rail0": {Total: 100, Held: 28, Free: 62, Reserve: 3, Quarantined: 4, Pinned: 7, Parked: 6, Short: 2, Recalled: 1},
	}}, errors.New("one write failed"), time.Millisecond)
	want := strings.Join([]string{
		`# HELP railhead_addresses_pool_held Addresses that nodes hold, for pods or in reserve.`,
		`# TYPE railhead_addresses_pool_held gauge`, `railhead_addresses_pool_held{pool="rail0"} 28`,
		`# HELP railhead_addresses_pool_used Addresses that pods have, as their SpiderEndpoints say.`,
		`# TYPE railhead_addresses_pool_used gauge`, `railhead_addresses_pool_used{pool="rail0"} 5`,
		`# HELP railhead_addresses_pool_short Addresses that nodes need and did not get.`,
		`# TYPE railhead_addresses_pool_short gauge`, `railhead_addresses_pool_short{pool="rail0"} 2`,
		`# HELP railhead_addresses_granted_total Addresses that nodes were granted.`,
		`# TYPE railhead_addresses_granted_total counter`, `railhead_addresses_granted_total 3`,
		`# HELP railhead_addresses_round_errors_total Rounds that failed in part, and were made up for by a later one.`,
		`# TYPE railhead_addresses_round_errors_total counter`, `railhead_addresses_round_errors_total 1`,
	}, "\n") + "\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"railhead_addresses_pool_held", "railhead_addresses_pool_used", "railhead_addresses_pool_short", "railhead_addresses_granted_total", "railhead_addresses_round_errors_total",
	); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("problems %v, error %v", problems, err)
	}
	m.pools.set(nil)
	if n, err := testutil.GatherAndCount(registry, "railhead_addresses_pool_held"); err != nil || n != 0 {
		t.Errorf("%d series of pools, error %v", n, err)
	}
}
