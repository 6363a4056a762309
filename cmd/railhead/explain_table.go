package main

import (
	"strconv"

	"railhead/internal/ipam/selection"
	"railhead/internal/overview"
)

// givenRow is an address of an interface.
type givenRow struct {
	nic string
	overview.GivenAddress
}

// givenTable lists the columns of the addresses that a pod has.
var givenTable = []column[givenRow]{
	{title: "INTERFACE", cell: func(r givenRow) string { return r.nic }},
	{title: "ADDRESS", cell: func(r givenRow) string { return r.Address }},
	{title: "POOL", cell: func(r givenRow) string { return r.Pool }},
	{title: "LEASE", cell: func(r givenRow) string { return r.Lease }},
	{title: "LEDGER", cell: func(r givenRow) string { return r.Ledger }},
	{title: "EPOCH", cell: func(r givenRow) string { return epochCell(r.Epoch) }},
	{title: "PROBLEM", cell: func(r givenRow) string { return r.Problem }},
}

// consideredRow is a pool that was considered for an interface.
type consideredRow struct {
	nic string
	selection.Considered
}

// consideredTable lists the columns of the pools that were considered.
var consideredTable = []column[consideredRow]{
	{title: "INTERFACE", cell: func(r consideredRow) string { return r.nic }},
	{title: "FAMILY", cell: func(r consideredRow) string { return "IPv" + strconv.FormatInt(r.Family, 10) }},
	{title: "POOL", cell: func(r consideredRow) string { return r.Pool }},
	{title: "NAMED BY", cell: func(r consideredRow) string { return r.From }},
	{title: "PASSED OVER", cell: func(r consideredRow) string { return r.Why }},
}
