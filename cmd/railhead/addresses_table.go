package main

import (
	"strconv"

	"railhead/internal/overview"
)

// nodeAddressesTable lists the columns of "railhead addresses" in order.
var nodeAddressesTable = []column[overview.NodeAddresses]{
	{title: "POOL", cell: func(n overview.NodeAddresses) string { return n.Pool }},
	{title: "NODE", cell: func(n overview.NodeAddresses) string { return n.Node }},
	{title: "HELD", cell: func(n overview.NodeAddresses) string { return count(n.Held) }},
	{title: "USED", cell: func(n overview.NodeAddresses) string { return count(n.Used) }},
	{title: "RESERVE", cell: func(n overview.NodeAddresses) string { return count(n.Reserve) }},
	{title: "PINNED", cell: func(n overview.NodeAddresses) string { return count(n.Pinned) }},
	{title: "QUARANTINED", cell: func(n overview.NodeAddresses) string { return count(n.Quarantined) }},
	{title: "WANTS", wide: true, cell: func(n overview.NodeAddresses) string { return count(n.Wants) }},
	{title: "RECALLED", wide: true, cell: func(n overview.NodeAddresses) string { return count(n.Recalled) }},
	{title: "SHORT", cell: func(n overview.NodeAddresses) string { return count(n.Short) }},
	{title: "WHY", cell: func(n overview.NodeAddresses) string { return n.Why }},
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
