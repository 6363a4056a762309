package cniserver

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"railhead/internal/attach/record"
)

// collectBelow takes away what a network has that another runtime of networks
// attached, and lists no more. What is being worked on is left alone.
func (s *Server) collectBelow(ctx context.Context, c call) error {
	valid, err := c.valid()
	if err != nil {
		return err
	}
	var errs []error
	for _, att := range s.config.Records.All() {
		if !isBelow(att) || isCoordinator(att) != (c.Plugin == pluginCoordinator) || !slices.ContainsFunc(att.Networks, isUnlisted(c, att, valid)) {
			continue
		}
		unlock, free := s.sandboxes.tryLock(att.ContainerID)
		if !free {
			continue
		}
		if now, ok := s.config.Records.Get(att.ContainerID); ok && now.At.Equal(att.At) {
			err := s.forgetUnlisted(ctx, c, now, valid)
			s.repaired(now, "GC: the runtime no longer has an interface of network "+c.conf.Name, err)
			errs = append(errs, err)
		}
		unlock()
	}
	return errors.Join(errs...)
}

// forgetUnlisted is what DEL would have done for each interface: addresses go with
// the last one, routes with the first.
func (s *Server) forgetUnlisted(ctx context.Context, c call, att record.Attachment, valid []types.GCAttachment) error {
	att.Networks = slices.DeleteFunc(att.Networks, isUnlisted(c, att, valid))
	if len(att.Networks) > 0 && !isCoordinator(att) {
		_, err := s.put(att)
		return err
	}
	undo, stop := detached(ctx)
	defer stop()
	return s.takeAway(undo, unasked(att), att, nil)
}

// isUnlisted tells the networks of an attachment that a GC is for and does not list.
func isUnlisted(c call, att record.Attachment, valid []types.GCAttachment) func(record.Network) bool {
	sandbox := sandboxOf(att)
	return func(n record.Network) bool {
		return n.From == fromBelow && n.Name == c.conf.Name &&
			!slices.Contains(valid, types.GCAttachment{ContainerID: sandbox, IfName: n.Interface})
	}
}

// isCoordinator says whether a record is of a pod's routes alone.
func isCoordinator(att record.Attachment) bool { return sandboxOf(att) != att.ContainerID }

// sandboxOf is the sandbox that a record is of.
func sandboxOf(att record.Attachment) string {
	return strings.TrimSuffix(att.ContainerID, "/"+pluginCoordinator)
}
