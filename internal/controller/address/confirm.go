package address

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/granter"
)

// confirmation asks the API server about the nodes whose addresses would be taken,
// for they are missing or out of service by what the cache says. A node that came
// back since would lose what its pods have.
type confirmation struct {
	live client.Reader
	// sure is by which version of a node's lease it was confirmed: who served the
	// node since has written its lease, and then the granter's write of it conflicts.
	sure map[string]string
}

func newConfirmation(live client.Reader) *confirmation {
	return &confirmation{live: live, sure: map[string]string{}}
}

// confirm mends a view of nodes. It is called after the leases were read. A node
// that cannot be read is granted nothing, and nothing is taken from it.
func (c *confirmation) confirm(ctx context.Context, leases []*v1alpha1.AddressLease, view map[string]granter.Node) error {
	var errs []error
	for _, lease := range leases {
		known, there := view[lease.Name]
		switch {
		case there && !known.Fenced:
			delete(c.sure, lease.Name)
			continue
		case isFenced(lease, known.UID), c.sure[lease.Name] == lease.ResourceVersion:
			continue
		}
		node := &corev1.Node{}
		switch err := c.live.Get(ctx, client.ObjectKey{Name: lease.Name}, node); {
		case err == nil && !isOutOfService(node):
			view[lease.Name] = granter.Node{UID: node.UID}
		case err == nil:
			view[lease.Name] = granter.Node{UID: node.UID, Fenced: true}
			c.sure[lease.Name] = lease.ResourceVersion
		case apierrors.IsNotFound(err): // missing, or out of service before it went
			c.sure[lease.Name] = lease.ResourceVersion
		default:
			view[lease.Name] = granter.Node{}
			errs = append(errs, fmt.Errorf("node %s: whether its addresses can be taken: %w", lease.Name, err))
		}
	}
	return errors.Join(errs...)
}
