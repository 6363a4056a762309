package policy

import (
	"fmt"
	"net/netip"
	"slices"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rangeList is one list of ranges, as far as it could be parsed.
type rangeList struct {
	ranges []netipx.IPRange
	set    *netipx.IPSet
}

// listOf parses ips or excludeIPs. subnet holds all of them; an invalid one is
// not asked. Items that break a rule are left out, the others stay.
func listOf(path *field.Path, items []string, subnet netip.Prefix) (rangeList, Review) {
	var (
		review Review
		found  []indexedRange
		list   rangeList
		build  netipx.IPSetBuilder
	)
	for i, item := range items {
		r, err := parseRange(item)
		if err == nil {
			err = within(r, subnet)
		}
		if err != nil {
			review.refuse(path.Index(i), item, "%v", err)
			continue
		}
		found = append(found, indexedRange{r, i})
		list.ranges = append(list.ranges, r)
		build.AddRange(r)
	}
	review.Errors = append(review.Errors, overlapsInList(path, items, found)...)
	set, err := build.IPSet()
	if err != nil {
		review.refuse(path, items, "%v", err)
		set = &netipx.IPSet{}
	}
	list.set = set
	return list, review
}

// indexedRange is a range and its place in the user's list.
type indexedRange struct {
	netipx.IPRange

	index int
}

// overlapsInList finds items that overlap one before them in address order,
// and names both.
func overlapsInList(path *field.Path, items []string, found []indexedRange) field.ErrorList {
	slices.SortStableFunc(found, func(a, b indexedRange) int { return a.From().Compare(b.From()) })
	var errs field.ErrorList
	for i := 1; i < len(found); i++ {
		before, here := found[i-1], found[i]
		if here.From().Compare(before.To()) <= 0 {
			first, second := min(before.index, here.index), max(before.index, here.index)
			errs = append(errs, field.Invalid(path.Index(second), items[second],
				fmt.Sprintf("overlaps %q, item %d of the same list: want each address once", items[first], first)))
		}
		if before.To().Compare(here.To()) > 0 {
			found[i] = indexedRange{netipx.IPRangeFrom(here.From(), before.To()), before.index}
		}
	}
	return errs
}

// within says why a range is not of a subnet.
func within(r netipx.IPRange, subnet netip.Prefix) error {
	if !subnet.IsValid() {
		return nil
	}
	if r.From().Is4() != subnet.Addr().Is4() {
		return fmt.Errorf("is IPv%d, and the subnet %s is IPv%d", versionOf(r.From()), subnet, versionOf(subnet.Addr()))
	}
	if !subnet.Contains(r.From()) || !subnet.Contains(r.To()) {
		return fmt.Errorf("is not within the subnet %s (%s)", subnet, formatRange(netipx.RangeOfPrefix(subnet)))
	}
	return nil
}

// mergeList writes a list of more than one item merged and in order. It says
// which overlapped, and leaves a list with items that do not parse, or are not
// of the subnet, as it is: the refusal that follows names them as they were
// written. An invalid subnet is not asked.
func mergeList(path *field.Path, items []string, subnet netip.Prefix) ([]string, Review) {
	if len(items) < 2 {
		return items, Review{}
	}
	list, review := listOf(path, items, subnet)
	if len(list.ranges) != len(items) || mixed(list.ranges) {
		return items, Review{}
	}
	merged := FormatRanges(list.set)
	var warned Review
	for _, e := range review.Errors {
		warned.Warnings = append(warned.Warnings, fmt.Sprintf("%s: %q overlaps another item of the list: merged into %q", e.Field, e.BadValue, merged))
	}
	return merged, warned
}

// mixed says whether ranges are of both families.
func mixed(ranges []netipx.IPRange) bool {
	return slices.ContainsFunc(ranges, func(r netipx.IPRange) bool { return r.From().Is4() != ranges[0].From().Is4() })
}
