package cniserver

import (
	"cmp"
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
		if !isBelow(att) || pluginOf(att) != c.Plugin || s.isKept(att, valid) || !slices.ContainsFunc(att.Networks, isUnlisted(c, att, valid)) {
			continue
		}
		unlock, free := s.sandboxes.tryLock(att.ContainerID)
		if !free {
			continue
		}
		if now, ok := s.config.Records.Get(att.ContainerID); ok && isAsListed(now, att) {
			err := s.forgetUnlisted(ctx, c, now, valid)
			s.repaired(now, "GC: the runtime no longer has an interface of network "+c.conf.Name, err)
			errs = append(errs, err)
		}
		unlock()
	}
	return errors.Join(errs...)
}

// isAsListed says whether a sandbox still has the interfaces that it had when GC began:
// one that came meanwhile is in no list.
func isAsListed(now, then record.Attachment) bool {
	return now.At.Equal(then.At) && now.State == then.State &&
		slices.EqualFunc(now.Networks, then.Networks, func(a, b record.Network) bool { return a.Interface == b.Interface })
}

// isKept says whether GC leaves an attachment alone for want of a list: null is by
// the letter that none is valid, and may as well come of who did not look. A network
// namespace that lives is in use.
func (s *Server) isKept(att record.Attachment, valid []types.GCAttachment) bool {
	return valid == nil && s.lives(att)
}

// forgetUnlisted is what DEL would have done for each interface: addresses go with
// the last one, routes with the first, what one stands on with it.
func (s *Server) forgetUnlisted(ctx context.Context, c call, att record.Attachment, valid []types.GCAttachment) error {
	if pluginOf(att) == pluginIPAM {
		return s.leave(ctx, unasked(att), att, isUnlisted(c, att, valid))
	}
	att.Networks = slices.DeleteFunc(att.Networks, isUnlisted(c, att, valid))
	undo, stop := detached(ctx)
	defer stop()
	return s.takeAway(undo, unasked(att), att, nil)
}

// isUnlisted tells the networks of an attachment that a GC is for and does not list.
func isUnlisted(c call, att record.Attachment, valid []types.GCAttachment) func(record.Network) bool {
	sandbox := sandboxOf(att.ContainerID)
	return func(n record.Network) bool {
		return n.From == fromBelow && n.Name == c.conf.Name &&
			!slices.Contains(valid, types.GCAttachment{ContainerID: sandbox, IfName: n.Interface})
	}
}

// coordinatorID is the ID of the record of a pod's routes.
func coordinatorID(sandbox string) string { return sandbox + "/" + pluginCoordinator }

// ifacerID is the ID of the record of what an interface of a pod stands on.
func ifacerID(sandbox, ifName string) string { return sandbox + "/" + pluginIfacer + "/" + ifName }

// sandboxOf is the sandbox that a record of an ID is of: none has a slash in its name.
func sandboxOf(id string) string {
	sandbox, _, _ := strings.Cut(id, "/")
	return sandbox
}

// pluginOf is the plugin whose record it is, of those below another runtime of networks.
func pluginOf(att record.Attachment) string {
	_, of, _ := strings.Cut(att.ContainerID, "/")
	plugin, _, _ := strings.Cut(of, "/")
	return cmp.Or(plugin, pluginIPAM)
}
