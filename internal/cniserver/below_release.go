package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"

	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/rtnl"
)

// delIPAM gives the addresses of a sandbox back with its last interface. An ADD of it
// that is under way ends. A plugin of another that we run ourselves may ask, too: its
// addresses go with the pod's.
func (s *Server) delIPAM(ctx context.Context, c call) error {
	if att, ok := s.config.Records.Get(c.ContainerID); ok && !isBelow(att) {
		return nil // who has it locked may be who runs the plugin that asks
	}
	s.sandboxes.interrupt(ipamID(c.ContainerID), errInterrupted)
	unlock, err := s.lock(ctx, ipamID(c.ContainerID))
	if err != nil {
		return err
	}
	defer unlock()
	if att, ok := s.config.Records.Get(c.ContainerID); !ok || !isBelow(att) {
		return nil
	}
	whole, err := s.lock(ctx, c.ContainerID)
	if err != nil {
		return err
	}
	defer whole()
	att, ok := s.config.Records.Get(c.ContainerID)
	if !ok || !isBelow(att) {
		return nil
	}
	return s.leave(ctx, c, att, func(n record.Network) bool { return n.Interface == c.IfName })
}

// leave takes addresses off interfaces of a sandbox that go. Its addresses are one
// assignment, and free again with the last of them: until then the others have theirs.
// Routes stand on addresses: where they are there still, they go before.
func (s *Server) leave(ctx context.Context, c call, att record.Attachment, goes func(record.Network) bool) error {
	leaving := slices.DeleteFunc(slices.Clone(att.Networks), func(n record.Network) bool { return !goes(n) })
	rest := slices.DeleteFunc(slices.Clone(att.Networks), func(n record.Network) bool { return goes(n) || s.isGone(att.ContainerID, n.Interface) })
	if len(leaving) == 0 && len(rest) > 0 {
		return nil
	}
	if err := s.delRecord(ctx, c, coordinatorID(att.ContainerID)); err != nil {
		return err
	}
	if len(rest) == 0 {
		undo, stop := detached(ctx)
		defer stop()
		return s.takeAway(undo, c, att, nil)
	}
	if err := s.unaddress(att, leaving); err != nil {
		return err
	}
	if err := s.keepRest(att, rest); err != nil {
		s.log.Warn("that an interface has no addresses any more is not recorded", "sandbox", att.ContainerID, "error", err)
	}
	return nil
}

// keepRest records which interfaces of a sandbox still have addresses, and remembers
// the others as long as that is not on the disk.
func (s *Server) keepRest(att record.Attachment, rest []record.Network) error {
	all := att.Networks
	att.Networks = rest
	_, err := s.put(att)
	for _, n := range all {
		s.noteGone(att.ContainerID, n.Interface, err != nil && !isAmong(rest, n.Interface))
	}
	return err
}

// keepGone records which interfaces gave their addresses back while the disk was full.
// What somebody works at is for the next time.
func (s *Server) keepGone() {
	s.mu.Lock()
	sandboxes := slices.Collect(maps.Keys(s.gone))
	s.mu.Unlock()
	for _, sandbox := range sandboxes {
		unlock, free := s.sandboxes.tryLock(sandbox)
		if !free {
			continue
		}
		if att, ok := s.config.Records.Get(sandbox); ok {
			rest := slices.DeleteFunc(slices.Clone(att.Networks), func(n record.Network) bool { return s.isGone(sandbox, n.Interface) })
			if err := s.keepRest(att, rest); err != nil {
				s.log.Debug("that an interface has no addresses any more is still not recorded", "sandbox", sandbox, "error", err)
			}
		}
		unlock()
	}
}

// isAmong says whether networks have one for an interface.
func isAmong(networks []record.Network, name string) bool {
	return slices.ContainsFunc(networks, func(n record.Network) bool { return n.Interface == name })
}

// noteGone remembers whether the record of a sandbox still has an interface that has
// given its addresses back: a full disk keeps no pod from going.
func (s *Server) noteGone(sandbox, name string, still bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.DeleteFunc(s.gone[sandbox], func(other string) bool { return other == name })
	if still {
		list = append(list, name)
	}
	if s.gone[sandbox] = list; len(list) == 0 {
		delete(s.gone, sandbox)
	}
}

// isGone says whether an interface of a record has given its addresses back.
func (s *Server) isGone(sandbox, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.gone[sandbox], name)
}

// forgetIPAM undoes a call that failed. Interfaces that were answered before keep what
// they have until their own DEL; where there are none, all addresses are free again.
func (s *Server) forgetIPAM(ctx context.Context, a *attempt, had record.Attachment) error {
	undo, stop := detached(ctx)
	defer stop()
	if had.ContainerID == "" {
		return s.takeAway(undo, a.call, a.att, a.quarantine)
	}
	had.Sequence = a.att.Sequence           // of what the pod has now
	had.Report.Checks = a.att.Report.Checks // who has an address that goes into quarantine with the last
	_, err := s.put(had)
	return err
}

// conflictsOf are the addresses of an attachment that others were found to have, and
// who: they go into quarantine when they are given back.
func conflictsOf(att record.Attachment) map[netip.Addr]string {
	found := map[netip.Addr]string{}
	for _, c := range att.Report.Checks {
		if addr, err := netip.ParseAddr(c.Address); err == nil && c.Kind == record.CheckConflict && !c.OK && c.MAC != "" {
			found[addr] = c.MAC
		}
	}
	return found
}

// unaddress takes what networks were given by IPAM off whatever has it in the pod's
// namespace. Plugins of others give addresses back before they take an interface away,
// and where that fails it has them for as long as the namespace lives.
func (s *Server) unaddress(att record.Attachment, networks []record.Network) error {
	given, err := givenTo(networks)
	if err != nil || len(given) == 0 || !s.lives(att) {
		return err
	}
	client, err := s.dial(att.NetNS)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all was answered
	there, err := client.Addresses()
	if err != nil {
		return err
	}
	var requests []rtnl.Request
	for _, one := range there {
		if slices.Contains(given, one.Prefix.Addr()) {
			requests = append(requests, rtnl.AddressDelete{Address: one})
		}
	}
	var errs []error
	for _, err := range client.Do(requests...) {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("addresses in %s: %w", att.NetNS, err))
		}
	}
	return errors.Join(errs...)
}

// givenTo are the addresses that networks were given by IPAM, but for those that hide
// behind the node's: a plugin that masquerades looks at its interface to know what to undo.
func givenTo(networks []record.Network) (list []netip.Addr, err error) {
	for _, n := range networks {
		for _, d := range n.Delegated {
			var conf struct {
				IPMasq bool `json:"ipMasq"`
			}
			if d.Type != pluginIPAM || d.Chain != atBelow || json.Unmarshal(d.Config, &conf) == nil && conf.IPMasq {
				continue
			}
			result, err := storedResult(d.Result)
			if err != nil || result == nil {
				return nil, err
			}
			for _, ip := range result.IPs {
				if prefix, ok := prefixOf(ip.Address); ok {
					list = append(list, prefix.Addr())
				}
			}
		}
	}
	return list, nil
}

// checkIPAM says whether an interface has addresses.
func (s *Server) checkIPAM(c call) error {
	att, ok := s.config.Records.Get(c.ContainerID)
	if ok && att.State == record.Attached && isAmong(att.Networks, c.IfName) && !s.isGone(c.ContainerID, c.IfName) {
		return nil
	}
	return coded(cnicall.CodeContainer, fmt.Errorf("sandbox %s: interface %s was given no addresses, or gave them back", c.ContainerID, c.IfName))
}
