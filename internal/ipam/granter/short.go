package granter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go4.org/netipx"

	"railhead/internal/ipam"
)

// namedMost is how many holders of a pool a text names.
const namedMost = 2

// whyShort is why a pool has no more addresses, for people.
func (r *round) whyShort(p *pool) string {
	if p.whyShort != "" {
		return p.whyShort
	}
	held, rest := map[string]int64{}, map[string]int64{}
	for _, b := range p.booksOf() {
		if b.state != known {
			continue
		}
		for run := range b.now().Runs() {
			n := ipam.CountList(ipam.Common([]netipx.IPRange{run.IPRange}, p.Addresses.Ranges()))
			switch {
			case run.Identity != "":
				rest["pinned"] += n
			case run.Quarantine != nil:
				rest["in quarantine"] += n
			default:
				held[run.Node] += n
			}
		}
	}
	p.whyShort = shortText(p.total.n, held, rest)
	return p.whyShort
}

// shortText is "all 21 addresses are held: 20 by node2, 1 pinned".
func shortText(total int64, held, rest map[string]int64) string {
	nodes := sortedKeys(held)
	slices.SortStableFunc(nodes, func(a, b string) int { return cmp.Compare(held[b], held[a]) })
	var parts []string
	var others, count int64
	for i, node := range nodes {
		if i < namedMost || len(nodes) == namedMost+1 {
			parts = append(parts, fmt.Sprintf("%d by %s", held[node], node))
			continue
		}
		others, count = others+held[node], count+1
	}
	if count > 0 {
		parts = append(parts, fmt.Sprintf("%d by %d other nodes", others, count))
	}
	for _, word := range []string{"pinned", "in quarantine"} {
		if rest[word] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", rest[word], word))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("none of its %d addresses can be given", total)
	}
	return fmt.Sprintf("all %d addresses are held: %s", total, strings.Join(parts, ", "))
}
