package main

import "railhead/internal/overview"

// networksTable lists the columns of "railhead networks" in order.
var networksTable = []column[overview.Network]{
	{title: "NETWORK", cell: func(n overview.Network) string { return n.FullName() }},
	{title: "TYPE", cell: func(n overview.Network) string { return n.Type }},
	{title: "ON", cell: onCell},
	{title: "RESOURCE", cell: func(n overview.Network) string { return n.Resource }},
	{title: "NAD", cell: madeCell},
	{title: "INJECT", cell: injectCell},
	{title: "POOLS", cell: poolsCell},
	{title: "PODS", cell: podsCell},
	{title: "READY", cell: networkReadyCell},
	{title: "NAMES", wide: true, cell: podNamesCell},
}
