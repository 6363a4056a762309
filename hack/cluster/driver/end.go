package driver

import (
	"context"
	"errors"
	"sync"

	"railhead/hack/cluster/plan"
)

// ErrFabricEnded is why a cluster ends by itself: without the fabric it has
// neither a network nor a control plane.
var ErrFabricEnded = errors.New("the fabric has ended by itself, and the cluster with it")

// whileFabric is a context that ends when the fabric does.
func (c *Cluster) whileFabric(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	b, err := c.on(plan.Fabric)
	if err != nil {
		cancel(ErrFabricEnded)
		return ctx, func() {}
	}
	go func() {
		select {
		case <-b.Done():
			cancel(ErrFabricEnded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Close ends the cluster and leaves nothing of it. What is being done to it
// fails. It may be called again.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	var errs []error
	for _, f := range c.forwarders {
		errs = append(errs, f.Close())
	}
	errs = append(errs, c.closeMachines(), c.dir.remove(), c.release())
	return errors.Join(errs...)
}

func (c *Cluster) closeMachines() error {
	var all sync.WaitGroup
	ends := make(chan error, len(c.machines))
	for _, m := range c.machines {
		all.Go(func() { ends <- m.close() })
	}
	all.Wait()
	close(ends)
	var errs []error
	for err := range ends {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
