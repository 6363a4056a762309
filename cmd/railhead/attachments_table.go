package main

import (
	"strconv"
	"strings"
	"time"

	"railhead/internal/attach/record"
	"railhead/internal/attach/routing"
)

// attachmentsTable lists the columns of "railhead attachments".
func attachmentsTable(now time.Time) []column[attachmentView] {
	return []column[attachmentView]{
		{title: "POD", cell: func(v attachmentView) string { return v.fullName() }},
		{title: "SANDBOX", cell: func(v attachmentView) string { return shortID(v.ContainerID) }},
		{title: "INTERFACES", cell: func(v attachmentView) string {
			return joinedOf(v.Report.Interfaces, func(i record.Interface) []string { return []string{i.Name} })
		}},
		{title: "ADDRESSES", cell: func(v attachmentView) string {
			return joinedOf(v.Report.Interfaces, func(i record.Interface) []string { return i.Addresses })
		}},
		{title: "AGE", cell: func(v attachmentView) string { return age(v.At, now) }},
		{title: "STATE", cell: func(v attachmentView) string { return v.stateCell() }},
		{title: "TOOK", cell: func(v attachmentView) string { return took(v.Report.Took) }},
		{title: "UID", wide: true, cell: func(v attachmentView) string { return v.PodUID }},
		{title: "NETNS", wide: true, cell: func(v attachmentView) string { return v.NetNS }},
		{title: "PARENTS", wide: true, cell: func(v attachmentView) string {
			return joinedOf(v.Report.Interfaces, func(i record.Interface) []string { return nonEmpty(i.Parent) })
		}},
		{title: "NETWORKS", wide: true, cell: func(v attachmentView) string {
			return joinedOf(v.Networks, func(n networkView) []string { return nonEmpty(n.title()) })
		}},
	}
}

// interfaceRow is an interface of a pod, and its network.
type interfaceRow struct {
	record.Interface

	network string
}

// interfacesTable lists the columns of a pod's interfaces.
var interfacesTable = []column[interfaceRow]{
	{title: "INTERFACE", cell: func(r interfaceRow) string { return r.Name }},
	{title: "NETWORK", cell: func(r interfaceRow) string { return r.network }},
	{title: "KIND", cell: func(r interfaceRow) string { return r.Kind }},
	{title: "PARENT", cell: func(r interfaceRow) string { return r.Parent }},
	{title: "MAC", cell: func(r interfaceRow) string { return r.MAC }},
	{title: "MTU", cell: func(r interfaceRow) string { return number(r.MTU) }},
	{title: "ADDRESSES", cell: func(r interfaceRow) string { return strings.Join(r.Addresses, ",") }},
	{title: "GATEWAYS", cell: func(r interfaceRow) string { return strings.Join(r.Gateways, ",") }},
	{title: "TABLE", cell: func(r interfaceRow) string { return number(r.Table) }},
}

// routeRow is a route in the pod, or on the node to it.
type routeRow struct {
	routing.Route

	where string
}

// routesTable lists the columns of routes.
var routesTable = []column[routeRow]{
	{title: "WHERE", cell: func(r routeRow) string { return r.where }},
	{title: "TABLE", cell: func(r routeRow) string { return tableCell(r.Table) }},
	{title: "DESTINATION", cell: func(r routeRow) string { return destinationCell(r.Route) }},
	{title: "VIA", cell: func(r routeRow) string { return addrCell(r.Via) }},
	{title: "DEV", cell: func(r routeRow) string { return r.Dev }},
	{title: "SRC", cell: func(r routeRow) string { return addrCell(r.Src) }},
	{title: "METRIC", cell: func(r routeRow) string { return number(int(r.Metric)) }},
	{title: "FOR", cell: func(r routeRow) string { return string(r.Why) }},
}

// ruleRow is a rule in the pod, or on the node for it.
type ruleRow struct {
	routing.Rule

	where string
}

// rulesTable lists the columns of rules.
var rulesTable = []column[ruleRow]{
	{title: "WHERE", cell: func(r ruleRow) string { return r.where }},
	{title: "PRIORITY", cell: func(r ruleRow) string { return strconv.FormatUint(uint64(r.Priority), 10) }},
	{title: "FAMILY", cell: func(r ruleRow) string { return "IPv" + strconv.Itoa(r.Family) }},
	{title: "FROM", cell: fromCell},
	{title: "MARK", cell: markCell},
	{title: "TABLE", cell: func(r ruleRow) string { return tableCell(r.Table) }},
}

// checksTable lists the columns of what was asked on the wire.
var checksTable = []column[record.Check]{
	{title: "INTERFACE", cell: func(c record.Check) string { return c.Interface }},
	{title: "CHECK", cell: func(c record.Check) string { return string(c.Kind) }},
	{title: "ADDRESS", cell: func(c record.Check) string { return c.Address }},
	{title: "RESULT", cell: checkCell},
	{title: "MAC", cell: func(c record.Check) string { return c.MAC }},
	{title: "WAITED", cell: func(c record.Check) string { return took(c.Waited) }},
	{title: "TRIES", cell: func(c record.Check) string { return number(c.Tries) }},
}

// stepsTable lists the columns of steps.
var stepsTable = []column[record.Step]{
	{title: "STEP", cell: func(s record.Step) string { return s.Name }},
	{title: "TOOK", cell: func(s record.Step) string { return took(s.Took) }},
}
