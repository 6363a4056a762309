package inventory

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sync/errgroup"

	"railhead/internal/kernel/node"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/uevent"
)

// listener hears what the kernel says of links, devices and RDMA.
type listener struct {
	links   *rtnl.Subscription
	uevents *uevent.Listener
	rdma    *rdmanl.Monitor      // nil where the kernel has none; uevents tell most of it
	heard   func([]rdmanl.Event) // is told what the monitor says
}

// listen opens the sockets, that of RDMA where the kernel has RDMA by now.
func listen(n node.Node, hasRDMA bool) (*listener, error) {
	links, err := n.Subscribe(rtnl.Links, rtnl.Addresses)
	if err != nil {
		return nil, err
	}
	uevents, err := n.Uevents()
	if err != nil {
		return nil, errors.Join(err, links.Close())
	}
	l := &listener{links: links, uevents: uevents}
	if !hasRDMA {
		return l, nil
	}
	if monitor, err := n.Monitor(); err == nil {
		l.rdma = monitor
	}
	return l, nil
}

func (l *listener) close() error {
	closers := []io.Closer{l.links, l.uevents}
	if l.rdma != nil {
		closers = append(closers, l.rdma)
	}
	var errs []error
	for _, c := range closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// run sends changes until ctx ends or a socket fails, and closes the sockets.
func (l *listener) run(ctx context.Context, events chan<- Changes) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		return errors.Join(ctx.Err(), l.close())
	})
	group.Go(func() error { return forward(ctx, events, l.linkChanges) })
	group.Go(func() error { return forward(ctx, events, l.deviceChanges) })
	if l.rdma != nil {
		group.Go(func() error { return forward(ctx, events, l.rdmaChanges) })
	}
	return group.Wait()
}

// failures is how many times in a row a socket may fail before it counts as
// broken.
const failures = 10

// forward sends what receive returns. After an error, be it that events were
// lost or that one could not be read, anything may have changed.
func forward(ctx context.Context, events chan<- Changes, receive func() (Changes, error)) error {
	failed := 0
	for {
		changed, err := receive()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			failed = 0
		case failed == failures, errors.Is(err, fs.ErrClosed):
			return err
		default:
			failed++
			changed = everything()
		}
		select {
		case events <- changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *listener) linkChanges() (Changes, error) {
	received, err := l.links.Receive()
	var changed Changes
	for _, e := range received {
		switch {
		case e.Link != nil:
			changed.merge(linkChange(e.Link.Index))
		case e.Address != nil:
			changed.merge(linkChange(e.Address.LinkIndex))
		}
	}
	return changed, err
}

// deviceChanges passes over what is none of our business: a node makes uevents
// for every disk, queue and process limit.
func (l *listener) deviceChanges() (Changes, error) {
	for {
		e, err := l.uevents.Receive()
		if err != nil {
			return Changes{}, err
		}
		switch e.Subsystem {
		case "infiniband", "infiniband_verbs", "infiniband_mad", "net", "pci", "auxiliary", "module":
			return pathChange(e.DevPath), nil
		}
	}
}

func (l *listener) rdmaChanges() (Changes, error) {
	received, err := l.rdma.Receive()
	l.heard(received)
	var changed Changes
	for _, e := range received {
		changed.merge(nameChange(e.DeviceName))
	}
	return changed, err
}
