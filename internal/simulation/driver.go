package simulation

import (
	"slices"
	"strings"
)

// rows returns all counters of a function of a card.
func (d *driver) rows(card *Card, isVF bool) []row {
	all := slices.Concat(d.hardware, d.whole, d.statisticsOf(card), cmRows)
	if d.hasPMA {
		all = append(all, pmaRows...)
	}
	if isVF {
		all = slices.DeleteFunc(all, func(r row) bool { return r.pf })
	}
	return all
}

// rowsOf returns those of some counters that a function has.
func rowsOf(rows []row, isVF bool) []row {
	if !isVF {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.pf })
}

// statisticsOf returns the statistics of a card's netdevs: IPoIB has none of
// priorities and of RDMA.
func (d *driver) statisticsOf(card *Card) []row {
	if card.LinkLayer != linkInfiniBand {
		return d.statistics
	}
	return slices.DeleteFunc(slices.Clone(d.statistics), func(r row) bool {
		return strings.Contains(r.name, "prio") || strings.Contains(r.name, "vport")
	})
}
