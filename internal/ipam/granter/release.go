package granter

import (
	"fmt"
	"strings"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// releaseAll is the word for all that is in quarantine.
const releaseAll = "all"

// release frees what an administrator says that nobody uses, and takes the word
// away by the same write: a crash repeats nothing. It is about what was in
// quarantine when that was said, and about nothing that anybody holds.
func (r *round) release(b *book) {
	word, said := b.ledger.Meta.Annotations[v1alpha1.AnnotationRelease]
	if !said || b.rebuilding() { // then it waits: what leases show is not all there yet
		return
	}
	named, problems := parseRelease(word, b.part)
	var was []netipx.IPRange
	for run := range b.ledger.Runs() {
		if run.Quarantine != nil {
			was = append(was, run.IPRange)
		}
	}
	was = ipam.Merged(was)
	used := ipam.Common(was, r.takenIn(b))
	var freed []netipx.IPRange
	for _, addresses := range ipam.Without(ipam.Common(named, was), used) {
		r.edit(b, addresses, func(run *ipam.Run) bool {
			if run.Quarantine != nil {
				freed = append(freed, run.IPRange)
			}
			return run.Quarantine == nil
		})
	}
	delete(b.change().Meta.Annotations, v1alpha1.AnnotationRelease)
	freed = ipam.Merged(freed)
	if len(freed) > 0 {
		b.say(News{Reason: NewsReleased, Text: fmt.Sprintf("released %s from quarantine: %s", counted(freed), listed(freed))})
	}
	switch {
	case word != releaseAll:
		problems = append(problems, b.unreleased(ipam.Without(named, freed), used)...)
	case len(used) > 0:
		problems = append(problems, b.unreleased(used, used)...)
	case len(freed) == 0:
		problems = append(problems, "nothing of this ledger is in quarantine")
	}
	if len(problems) > 0 {
		b.say(News{Warning: true, Reason: NewsNotReleased, Text: v1alpha1.AnnotationRelease + ": not released: " + strings.Join(problems, "; ")})
	}
}

// parseRelease reads the word of AnnotationRelease: addresses in order, and what
// cannot be read of it.
func parseRelease(word string, part netipx.IPRange) (named []netipx.IPRange, problems []string) {
	if word == releaseAll {
		return []netipx.IPRange{part}, nil
	}
	var build netipx.IPSetBuilder
	for item := range strings.SplitSeq(word, ",") {
		addresses, err := ipam.ParseRange(strings.TrimSpace(item))
		if err != nil {
			problems = append(problems, fmt.Sprintf(`%.100q: want %q, or addresses and ranges such as "10.0.0.7,10.0.0.20-10.0.0.29"`, item, releaseAll))
			continue
		}
		build.AddRange(addresses)
	}
	set, err := build.IPSet()
	if err != nil { // of invalid ranges, which were not added
		return nil, append(problems, err.Error())
	}
	return set.Ranges(), problems
}

// takenIn is the addresses of a ledger's pool and part that pods have, as far as
// SpiderEndpoints say.
func (r *round) takenIn(b *book) []netipx.IPRange {
	taken := r.takenOf(b.pool)
	if taken == nil {
		return nil
	}
	return ipam.Common(taken.Ranges(), []netipx.IPRange{b.part})
}

// unreleased is why addresses cannot be released, each reason once. Those used
// are of what is in quarantine.
func (b *book) unreleased(ranges, used []netipx.IPRange) []string {
	var order []string
	whose := map[string][]netipx.IPRange{}
	add := func(why string, some ...netipx.IPRange) {
		if len(some) == 0 {
			return
		}
		if whose[why] == nil {
			order = append(order, why)
		}
		whose[why] = append(whose[why], some...)
	}
	part := []netipx.IPRange{b.part}
	add("of a pod, as a SpiderEndpoint says", ipam.Common(ranges, used)...)
	ranges = ipam.Without(ranges, used)
	here := ipam.Common(ranges, part)
	for _, addresses := range here {
		for run := range b.now().Within(addresses) {
			add(whyKept(&run), ipam.Common([]netipx.IPRange{addresses}, []netipx.IPRange{run.IPRange})...)
		}
	}
	add("free already", ipam.Without(here, b.now().HeldList())...)
	add("not of this ledger, which is about "+ipam.FormatRange(b.part), ipam.Without(ranges, part)...)
	problems := make([]string, len(order))
	for i, why := range order {
		problems[i] = fmt.Sprintf("%s (%s)", listed(ipam.Merged(whose[why])), why)
	}
	return problems
}

// whyKept is why a run is not released.
func whyKept(run *ipam.Run) string {
	switch {
	case run.Quarantine != nil:
		return "in quarantine only now: " + run.Quarantine.Reason
	case run.Identity != "" && run.Node == "":
		return "kept for " + run.Identity
	case run.Identity != "":
		return fmt.Sprintf("kept for %s, on node %s", run.Identity, run.Node)
	}
	return "held by node " + run.Node
}
