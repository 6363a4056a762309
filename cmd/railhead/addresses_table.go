package main

import (
	"strconv"

	"railhead/internal/overview"
)

// nodeAddressesTable lists the columns of "railhead addresses" in order.
var nodeAddressesTable = []column[overview.NodeAddresses]{
	{title: "POOL", cell: func(n overview.NodeAddresses) string { return n.Pool }},
	{title: "NODE", cell: func(n overview.NodeAddresses) string { return n.Node }},
	{title: "HELD", cell: func(n overview.NodeAddresses) string { return strconv.FormatInt(n.Held, 10) }},
	{title: "USED", cell: func(n overview.NodeAddresses) string { return count(n.Used) }},
	{title: "RESERVE", cell: func(n overview.NodeAddresses) string { return count(n.Reserve) }},
	{title: "PINNED", cell: func(n overview.NodeAddresses) string { return strconv.FormatInt(n.Pinned, 10) }},
	{title: "QUARANTINED", cell: func(n overview.NodeAddresses) string { return strconv.FormatInt(n.Quarantined, 10) }},
	{title: "SHORT", cell: func(n overview.NodeAddresses) string { return n.Short }},
}

// runsTable lists the columns of "railhead addresses --pool P" in order.
var runsTable = []column[overview.AddressRun]{
	{title: "POOL", cell: func(r overview.AddressRun) string { return r.Pool }},
	{title: "ADDRESSES", cell: func(r overview.AddressRun) string { return r.Addresses }},
	{title: "COUNT", cell: func(r overview.AddressRun) string { return strconv.FormatInt(r.Count, 10) }},
	{title: "STATE", cell: func(r overview.AddressRun) string { return string(r.State) }},
	{title: "NODE", cell: func(r overview.AddressRun) string { return r.Node }},
	{title: "POD", cell: holderCell},
	{title: "KEPT", cell: keptCell},
	{title: "EPOCH", wide: true, cell: func(r overview.AddressRun) string { return epochCell(r.Epoch) }},
}
