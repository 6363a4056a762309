package cniserver

import (
	"railhead/internal/agent/address"
	"railhead/internal/agent/cluster"
	"railhead/internal/cnicall"
	"railhead/internal/cniserver/delegate"
)

// What the agent gives a Server, and what it is given to.
var (
	_ Addresses                       = (*address.Service)(nil)
	_ Cluster                         = (*cluster.Cache)(nil)
	_ Delegate                        = (*delegate.Delegate)(nil)
	_ func() ([]delegate.File, error) = (*delegate.Delegate)(nil).Files
	_ cnicall.Handler                 = (*Server)(nil).Handle
)
