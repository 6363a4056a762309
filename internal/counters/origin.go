package counters

import (
	"slices"
	"strings"
)

// Origin is a counter of the kernel that a family has, or has a part of.
type Origin struct {
	Drivers []string // "mlx5"; none for any
	Source  string   // where the kernel shows it: "rdma statistic", "ethtool -S", …
	Key     string   // the kernel's name; a # stands for a priority or lane
	Bits    int      // how wide it is in the kernel
	Stops   bool     // at its largest value, in place of beginning again at zero
}

// sourceNames are what an administrator calls the sources.
func (s source) String() string {
	return [...]string{
		statistics: "rdma statistic", deviceFiles: "DEV/hw_counters", portFiles: "DEV/ports/N/counters",
		driverStats: "ethtool -S", standard: "ethtool -S --all-groups", priorities: "dcb pfc",
		vnic: "devlink health diagnose reporter vnic", cmFiles: "DEV/ports/N",
	}[s]
}

// Origins returns the kernel's counters that a family has, those of one driver
// and source side by side. A second place where some kernels and modes show the
// same counters is left out.
func Origins(f *Family) []Origin {
	var list []Origin
	for _, s := range sets {
		for i := 0; i < len(s.rows) && !s.again; i++ {
			r := &s.rows[i]
			if s.family(r) != f.Name && !r.feedsFamily(f.Name) {
				continue
			}
			list = append(list, Origin{
				Drivers: s.drivers, Source: s.source.String(), Key: r.key, Bits: r.width(), Stops: r.saturates,
			})
		}
	}
	return list
}

func (r *row) feedsFamily(name string) bool {
	return slices.ContainsFunc(r.feeds, func(feed string) bool { return strings.Fields(strings.TrimPrefix(feed, "?"))[0] == name })
}

func (r *row) width() int {
	if r.bits == 0 {
		return 64
	}
	return int(r.bits)
}

// SpecNames returns the names that the project's specification asks for,
// without rdma_ and _total.
func SpecNames() []string { return strings.Fields(specNames) }
