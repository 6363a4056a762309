package granter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/ipam"
)

// News is what a write of a ledger means to people. It is told once, after it is
// certain that the write was done; that of a leader which ends meanwhile is lost.
type News struct {
	Ledger          string
	UID             types.UID
	ResourceVersion string // of the write
	Warning         bool
	Reason          string // one of those below
	Text            string // may be long: what counts is at its beginning
}

// Reasons of News.
const (
	NewsQuarantined = "Quarantined"
	NewsReleased    = "Released"
	NewsNotReleased = "NotReleased"
	NewsRebuilding  = "Rebuilding"
	NewsRebuilt     = "Rebuilt"
)

// hope is a write that failed, and may have been done all the same.
type hope struct {
	ledger *ipam.Ledger
	news   []News
}

// say adds to what is told once the ledger is written.
func (b *book) say(n News) { b.news = append(b.news, n) }

// tellNews tells what a write of a ledger means, which was done.
func (r *round) tellNews(news []News, written *metav1.ObjectMeta) {
	for _, n := range news {
		n.Ledger, n.UID, n.ResourceVersion = written.Name, written.UID, written.ResourceVersion
		r.report.News = append(r.report.News, n)
	}
}

// tellHoped tells of a write that was done after all, by what a read found.
func (r *round) tellHoped(b *book) {
	if b.hoped != nil && sameBooks(b.hoped.ledger, b.ledger) {
		r.tellNews(b.hoped.news, &b.ledger.Meta)
	}
	b.hoped = nil
}

// sameBooks says whether two ledgers are of one write.
func sameBooks(a, b *ipam.Ledger) bool {
	return a.Epoch == b.Epoch && maps.Equal(a.Meta.Annotations, b.Meta.Annotations) &&
		slices.EqualFunc(slices.Collect(a.Runs()), slices.Collect(b.Runs()), sameRun)
}

// sayQuarantined tells what this round puts into quarantine, by reason and by
// whose it was.
func (b *book) sayQuarantined() {
	if b.tally.quarantined == 0 {
		return
	}
	type origin struct{ node, why string }
	from := map[origin][]netipx.IPRange{}
	for run := range b.next.Runs() {
		if run.Quarantine == nil {
			continue
		}
		fresh := []netipx.IPRange{run.IPRange}
		for before := range b.ledger.Within(run.IPRange) {
			both := ipam.Common([]netipx.IPRange{before.IPRange}, []netipx.IPRange{run.IPRange})
			if fresh = ipam.Without(fresh, both); before.Quarantine == nil {
				at := origin{before.Node, run.Quarantine.Reason}
				from[at] = append(from[at], both...)
			}
		}
		if at := (origin{"", run.Quarantine.Reason}); len(fresh) > 0 {
			from[at] = append(from[at], fresh...)
		}
	}
	var parts []string
	for _, at := range slices.SortedFunc(maps.Keys(from), func(a, b origin) int { return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.why, b.why)) }) {
		of := ""
		if at.node != "" {
			of = " of node " + at.node
		}
		ranges := ipam.Merged(from[at])
		parts = append(parts, fmt.Sprintf("%s%s in quarantine, %s: %s", counted(ranges), of, at.why, listed(ranges)))
	}
	if len(parts) > 0 {
		b.say(News{Warning: true, Reason: NewsQuarantined, Text: strings.Join(parts, "; ")})
	}
}

// counted is "1 address" or "7 addresses".
func counted(ranges []netipx.IPRange) string {
	if n := ipam.CountList(ranges); n != 1 {
		return fmt.Sprintf("%d addresses", n)
	}
	return "1 address"
}

// listed is addresses as text.
func listed(ranges []netipx.IPRange) string { return strings.Join(ipam.FormatList(ranges), ", ") }
