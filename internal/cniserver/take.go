package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/cniserver/delegate"
	"railhead/internal/ipam/holder"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/npwg"
)

// takeAway takes away all that an attachment has, in the reverse of the order in
// which it came, and goes on after errors. It needs the record and the kernel
// alone. What it could not take stays in the record, for the next time.
//
// Addresses are free again once no interface has them: the namespace is gone, or all
// that has them is, interfaces of others' plugins too.
func (s *Server) takeAway(ctx context.Context, c call, att record.Attachment, quarantine map[netip.Addr]string) error {
	if att.Newer != 0 {
		return fmt.Errorf("the record of sandbox %s is of a later release (%d): start that release to take it away", att.ContainerID, att.Newer)
	}
	why, err := s.ended(att)
	if err != nil {
		return err
	}
	gone := why != ""
	if gone {
		c.NetNS = ""
	}
	s.unclaim(att.ContainerID)
	s.publisher.drop(att.ContainerID)
	att.State = record.Detaching
	if _, err := s.put(att); err != nil {
		s.log.Debug("that an attachment is being taken away is not recorded", "sandbox", att.ContainerID, "error", err)
	}
	errs := []error{s.delForeign(ctx, c, &att, true)}
	undone := s.undo(ctx, att)
	errs = append(errs, undone, s.delForeign(ctx, c, &att, false))
	if gone || undone == nil && !isAddressed(att) {
		errs = append(errs, s.release(ctx, att, quarantine))
	}
	s.removeDeviceInfo(att)
	if err := errors.Join(errs...); err != nil {
		if _, bad := s.put(att); bad != nil {
			s.log.Debug("what is left of an attachment is not recorded", "sandbox", att.ContainerID, "error", bad)
		}
		return err
	}
	// It need not be on the disk: what a crash brings back is taken away again.
	if _, err := s.config.Records.Remove(att.ContainerID); err != nil {
		s.log.Warn("that an attachment is gone is not on the disk yet", "sandbox", att.ContainerID, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, att.ContainerID)
	delete(s.gone, att.ContainerID)
	return nil
}

// isAddressed says whether plugins of others are still to take an interface away that
// has addresses of ours.
func isAddressed(att record.Attachment) bool {
	return slices.ContainsFunc(att.Networks, func(n record.Network) bool {
		return slices.ContainsFunc(n.Delegated, func(d record.Delegate) bool {
			var conf struct {
				IPAM struct {
					Type string `json:"type"`
				} `json:"ipam"`
			}
			return d.Chain != atBelow && json.Unmarshal(d.Config, &conf) == nil && conf.IPAM.Type == pluginIPAM
		})
	})
}

// undo takes away what we made, and addresses that IPAM gave to interfaces of others.
func (s *Server) undo(ctx context.Context, att record.Attachment) error {
	switch {
	case att.PlanLost && s.lives(att):
		return s.sweep(att.NetNS) // what the node has of it, nobody knows any more
	case att.Plan == nil:
		return s.unaddress(att, att.Networks)
	}
	return s.config.Attacher.Undo(ctx, att.Plan, func(shared string) bool { return s.inUse(shared, att.ContainerID) })
}

// inUse says whether a shared link is needed by another sandbox than the one that is
// taken away. One that is being taken away, too, needs it no more: each of two at
// once would leave it to the other.
func (s *Server) inUse(shared, sandbox string) bool {
	return slices.ContainsFunc(s.config.Records.All(), func(o record.Attachment) bool {
		return o.ContainerID != sandbox && o.State != record.Detaching && o.BootID == s.config.BootID && o.Plan != nil && standsOn(o.Plan, shared)
	})
}

// standsOn says whether a plan has a shared link.
func standsOn(p *attach.Plan, shared string) bool {
	return slices.ContainsFunc(p.Shared, func(l attach.SharedLink) bool { return l.Name == shared })
}

// release gives an attachment's addresses back.
func (s *Server) release(ctx context.Context, att record.Attachment, quarantine map[netip.Addr]string) error {
	if att.Key.PodUID == "" {
		return nil
	}
	found := conflictsOf(att)
	maps.Copy(found, quarantine)
	return s.config.Addresses.Release(ctx, holder.Key{PodUID: types.UID(att.Key.PodUID), Sandbox: att.Key.Sandbox}, att.Sequence, found)
}

// delForeign runs DEL of others' plugins, the last first: those behind interfaces
// of ours, or all the rest. Those that are done leave the record.
func (s *Server) delForeign(ctx context.Context, c call, att *record.Attachment, behind bool) error {
	var errs []error
	for i := range slices.Backward(att.Networks) {
		n := &att.Networks[i]
		ours := isOurs(att.Plan, n.Interface)
		result, err := last(*n)
		if err != nil {
			errs = append(errs, err)
		}
		for d, one := range slices.Backward(n.Delegated) {
			if one.Chain == atBelow || behind != (ours && one.Chain != atIPAM) {
				continue
			}
			if err := s.delOne(ctx, c, one, result); err != nil {
				errs = append(errs, fmt.Errorf("network %s, interface %s: %w", n.Name, n.Interface, err))
				continue
			}
			n.Delegated = slices.Delete(n.Delegated, d, d+1)
		}
	}
	return errors.Join(errs...)
}

// delOne runs DEL of one plugin.
func (s *Server) delOne(ctx context.Context, c call, d record.Delegate, result *types100.Result) error {
	config := d.Config
	if d.Chain != atIPAM {
		var err error
		if config, err = withResult(config, result); err != nil {
			return err
		}
	}
	err := s.config.Delegate.Del(ctx, c.delegated(d.Type, d.IfName, config))
	if errors.Is(err, delegate.ErrNotThere) && c.NetNS == "" {
		s.log.Warn("a plugin that attached a pod is not there any more; nor is the pod's network namespace", "plugin", d.Type, "sandbox", c.ContainerID, "error", err)
		return nil
	}
	return err
}

// isOurs says whether a plan makes an interface.
func isOurs(p *attach.Plan, name string) bool {
	return p != nil && slices.ContainsFunc(p.Interfaces, func(i attach.PlannedInterface) bool { return i.Name == name && i.Kind != attach.Foreign })
}

// removeDeviceInfo removes what plugins wrote of devices.
func (s *Server) removeDeviceInfo(att record.Attachment) {
	if s.config.DeviceInfo == "" {
		return
	}
	for _, n := range att.Networks {
		path := filepath.Join(s.config.DeviceInfo, npwg.NetworkDeviceFile(att.ContainerID, n.Interface))
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.log.Warn("device information of an interface that is gone cannot be removed", "path", path, "error", err)
		}
	}
}

// sweep removes links of our group from a namespace that no record is of: one by one,
// as the pod may have put a device there, which the kernel does not delete.
func (s *Server) sweep(path string) error {
	client, err := s.dial(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	defer func() { _ = client.Close() }() // it is only asked
	links, err := client.Links()
	errs := []error{err}
	for _, l := range links {
		if l.Group == attach.Group && l.Kind != "" {
			errs = append(errs, client.Do(rtnl.LinkDelete{Index: l.Index})...)
		}
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("links of ours in %s: %w", path, err)
		}
	}
	return nil
}

// dial opens a client of the network namespace that the node has at a path.
func (s *Server) dial(path string) (*rtnl.Client, error) {
	path, err := s.config.NetNS(path)
	if err != nil {
		return nil, err
	}
	ns, err := netns.Open(path)
	if err != nil {
		return nil, err
	}
	client, err := s.config.Dial(&rtnl.Config{NetNS: ns.FD()})
	return client, errors.Join(err, ns.Close())
}
