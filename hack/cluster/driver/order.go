package driver

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Order is one thing to do to a running cluster. Machine is "fabric" or a
// node's name; which of the others count depends on the verb.
type Order struct {
	Verb      string `json:"verb"`
	Machine   string `json:"machine,omitempty"`
	Component string `json:"component,omitempty"` // kubelet, etcd, …
	Link      string `json:"link,omitempty"`      // eth0, a rail's netdev or its number
	Address   string `json:"address,omitempty"`   // to forward to: 10.99.0.11:5711
	Path      string `json:"path,omitempty"`      // of an image on the host
}

// verb is one kind of order.
type verb struct {
	name string
	do   func(ctx context.Context, c *Cluster, o Order) (string, error)
}

// carryOut does what an order says and tells what there is to say.
func (c *Cluster) carryOut(ctx context.Context, o Order) (string, error) {
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.name == o.Verb })
	if i < 0 {
		var known []string
		for _, v := range verbs {
			known = append(known, v.name)
		}
		return "", fmt.Errorf("order %q: want one of %s", o.Verb, strings.Join(known, ", "))
	}
	return verbs[i].do(ctx, c, o)
}

// quietly makes a verb of something that has nothing to tell.
func quietly(name string, do func(ctx context.Context, c *Cluster, o Order) error) verb {
	return verb{name, func(ctx context.Context, c *Cluster, o Order) (string, error) { return "", do(ctx, c, o) }}
}
