package main

import "railhead/internal/overview"

// poolsTable lists the columns of "railhead pools" in order.
var poolsTable = []column[overview.Pool]{
	{title: "NAME", cell: func(p overview.Pool) string { return p.Name }},
	{title: "FAMILY", cell: familyCell},
	{title: "SUBNET", cell: func(p overview.Pool) string { return p.Subnet }},
	{title: "TOTAL", cell: func(p overview.Pool) string { return count(p.Total) }},
	{title: "USED", cell: func(p overview.Pool) string { return count(p.Used) }},
	{title: "HELD", cell: func(p overview.Pool) string { return count(p.Held) }},
	{title: "QUARANTINED", cell: func(p overview.Pool) string { return count(p.Quarantined) }},
	{title: "FREE", cell: func(p overview.Pool) string { return count(p.Free) }},
	{title: "USED%", wide: true, cell: part},
	{title: "RESERVED", wide: true, cell: func(p overview.Pool) string { return count(p.Reserved) }},
	{title: "GATEWAY", wide: true, cell: func(p overview.Pool) string { return p.Gateway }},
	{title: "FLAGS", cell: flagsCell},
	{title: "FOR", cell: forCell},
	{title: "READY", cell: func(p overview.Pool) string { return readyCell(p.Ready, p.Why) }},
}
