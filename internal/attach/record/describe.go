package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"railhead/internal/attach"
)

// describe is what of a Report a Plan says.
func describe(plan *attach.Plan) Report {
	var r Report
	if plan == nil {
		return r
	}
	for _, p := range plan.Interfaces {
		r.Interfaces = append(r.Interfaces, interfaceOf(p))
	}
	r.Routes, r.Rules = routesOf(plan), rulesOf(plan)
	r.Notes = slices.Clone(plan.Notes)
	return r
}

// Whole is the attachment's Report with what its Plan says, where the Report does
// not say it itself.
func (a Attachment) Whole() Report {
	r, planned := a.Report, describe(a.Plan)
	if r.At.IsZero() {
		r.At = a.At
	}
	if len(r.Interfaces) == 0 {
		r.Interfaces = planned.Interfaces
	}
	if len(r.Routes) == 0 && len(r.Rules) == 0 {
		r.Routes, r.Rules = planned.Routes, planned.Rules
	}
	notes := slices.Clone(r.Notes)
	for _, note := range planned.Notes {
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	r.Notes = notes
	return r
}

func interfaceOf(p attach.PlannedInterface) Interface {
	i := Interface{
		Name: p.Name, Kind: string(p.Kind), Parent: p.Parent, MAC: p.MAC, MTU: p.MTU, Table: p.Table,
		Addresses: stringsOf(p.Addresses), Gateways: stringsOf(p.Gateways),
	}
	if p.Kind == attach.Foreign && p.Before != nil {
		i.MAC, i.MTU = cmp.Or(i.MAC, p.Before.MAC), cmp.Or(i.MTU, p.Before.MTU)
	}
	return i
}

func stringsOf[T fmt.Stringer](values []T) []string {
	var list []string
	for _, v := range values {
		list = append(list, v.String())
	}
	return list
}

// routesOf are a plan's routes in the pod, and which the node has to it. What
// differs in its table alone is one line: every rail has the same routes over the
// node. Those of link-local addresses go without saying.
func routesOf(plan *attach.Plan) []string {
	var list []string
	tables := map[string][]int{}
	for _, route := range plan.Routing.Pod.Routes {
		if route.Dst.Addr().IsLinkLocalUnicast() && route.Dst.Addr().Is6() {
			continue
		}
		text := routeText(route.Dst, route.Via, route.Dev)
		if _, known := tables[text]; !known {
			list = append(list, text)
		}
		tables[text] = append(tables[text], int(route.Table))
	}
	for i, text := range list {
		list[i] = text + " table " + tableNames(tables[text])
	}
	return append(list, hostRoutesOf(plan)...)
}

// hostRoutesOf are the node's routes to the pod, as many as it has addresses: a
// line for each link and table.
func hostRoutesOf(plan *attach.Plan) []string {
	var list []string
	count := map[string]int{}
	for _, route := range plan.Routing.Host.Routes {
		text := fmt.Sprintf("dev %s table %s", route.Dev, tableNames([]int{int(route.Table)}))
		if count[text]++; count[text] == 1 {
			list = append(list, text)
		}
	}
	for i, text := range list {
		list[i] = fmt.Sprintf("node: %d of the pod's addresses %s", count[text], text)
	}
	return list
}

func routeText(dst netip.Prefix, via netip.Addr, dev string) string {
	text := dst.String()
	switch {
	case dst.Bits() == 0:
		text = "default"
	case dst.IsSingleIP():
		text = dst.Addr().String()
	}
	if via.IsValid() {
		text += " via " + via.String()
	}
	return text + " dev " + dev
}

// tableNames are numbers of tables as ranges, the main one by its name.
func tableNames(tables []int) string {
	const main = 254
	slices.Sort(tables)
	tables = slices.Compact(tables)
	var list []string
	for i := 0; i < len(tables); i++ {
		first := i
		for i+1 < len(tables) && tables[i+1] == tables[i]+1 && tables[i+1] != main {
			i++
		}
		switch {
		case tables[first] == main:
			list = append([]string{"main"}, list...)
		case first == i:
			list = append(list, strconv.Itoa(tables[i]))
		default:
			list = append(list, fmt.Sprintf("%d-%d", tables[first], tables[i]))
		}
	}
	return strings.Join(list, ",")
}

func rulesOf(plan *attach.Plan) []string {
	var list []string
	for _, rule := range plan.Routing.Pod.Rules {
		list = append(list, ruleText(rule.Priority, rule.From, rule.Mark, rule.Mask, rule.Table))
	}
	for _, rule := range plan.Routing.Host.Rules {
		list = append(list, "node: "+ruleText(rule.Priority, rule.From, rule.Mark, rule.Mask, rule.Table))
	}
	slices.Sort(list)
	return slices.Compact(list) // those of all packets are there for each family
}

func ruleText(priority uint32, from netip.Prefix, mark, mask, table uint32) string {
	text := fmt.Sprintf("%d: from all", priority)
	if from.IsValid() {
		text = fmt.Sprintf("%d: from %s", priority, from.Addr())
	}
	if from.IsValid() && !from.IsSingleIP() {
		text = fmt.Sprintf("%d: from %s", priority, from)
	}
	if mask != 0 {
		text += fmt.Sprintf(" fwmark %#x/%#x", mark, mask)
	}
	return text + " lookup " + tableNames([]int{int(table)})
}

// AnnotationLimit is how many bytes a pod's annotation is to have at most.
const AnnotationLimit = 8 << 10

// AnnotationText is the value of the pod's annotation. What makes it too long is
// left out, least needed first, and a note says so: all is in the node's record.
func (r Report) AnnotationText() (string, error) {
	var left []string
	for _, leaveOut := range []struct {
		what string
		do   func()
	}{
		{"", func() {}},
		{"addresses that nobody else has", func() { r.drop(func(c Check) bool { return c.OK && c.Kind == CheckConflict }) }},
		{"routes and rules", func() { r.Routes, r.Rules = nil, nil }},
		{"steps", func() { r.Steps = nil }},
		{"checks without a finding", func() { r.drop(func(c Check) bool { return c.OK }) }},
		{"other notes", func() { r.Notes = nil }},
		{"interfaces", func() { r.Interfaces = nil }},
	} {
		leaveOut.do()
		short := r
		if leaveOut.what != "" {
			left = append(left, leaveOut.what)
			short.Notes = append(slices.Clone(r.Notes), strings.Join(left, ", ")+" are left out here: railhead attachments on the node has them")
		}
		text, err := json.Marshal(short)
		if err != nil {
			return "", fmt.Errorf("annotation %s: %w", Annotation, err)
		}
		if len(text) <= AnnotationLimit {
			return string(text), nil
		}
	}
	return "", fmt.Errorf("annotation %s: its checks alone have more than %d bytes", Annotation, AnnotationLimit)
}

// drop leaves out some checks.
func (r *Report) drop(which func(Check) bool) {
	r.Checks = slices.DeleteFunc(slices.Clone(r.Checks), which)
}
