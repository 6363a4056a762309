package cniserver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"railhead/internal/attach"
	"railhead/internal/attach/probe"
	"railhead/internal/attach/record"
)

// claim has the watcher look for others who want the addresses of an attachment.
func (s *Server) claim(att record.Attachment) {
	if att.Plan == nil {
		return
	}
	claims := map[string][]probe.Claim{}
	for _, i := range att.Plan.Interfaces {
		if i.Kind == attach.Foreign || i.Kind == attach.HostDevice || i.Parent == "" || i.InContainer {
			continue // nothing of the node sees its traffic
		}
		mac := macOf(i.MAC)
		if mac == nil {
			continue // ours could not be told from others
		}
		for _, prefix := range i.Addresses {
			claims[i.Parent] = append(claims[i.Parent], probe.Claim{Addr: prefix.Addr(), MAC: mac, Owner: att.Namespace + "/" + att.Name})
		}
	}
	addrs := map[string][]netip.Addr{}
	for parent, list := range claims {
		s.watcher.Claim(parent, list...)
		for _, c := range list {
			addrs[parent] = append(addrs[parent], c.Addr)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimed[att.ContainerID] = addrs
}

// unclaim ends the claims of an attachment, but for what a later one has.
func (s *Server) unclaim(sandbox string) {
	s.mu.Lock()
	mine := s.claimed[sandbox]
	delete(s.claimed, sandbox)
	for parent, addrs := range mine {
		mine[parent] = slices.DeleteFunc(addrs, func(addr netip.Addr) bool { return s.owner(parent, addr) != "" })
	}
	s.mu.Unlock()
	for parent, addrs := range mine {
		s.watcher.Unclaim(parent, addrs...)
	}
}

// owner is the sandbox that has an address on a parent. The lock is held.
func (s *Server) owner(parent string, addr netip.Addr) string {
	for sandbox, parents := range s.claimed {
		if slices.Contains(parents[parent], addr) {
			return sandbox
		}
	}
	return ""
}

// conflict tells of another host that has or wants an address of a pod.
func (s *Server) conflict(c probe.Conflict) {
	s.metrics.conflicts.WithLabelValues(c.Parent).Inc()
	s.doubt(c.Addr)
	does := "claims"
	if c.Kind == probe.KindProbe {
		does = "asks for"
	}
	text := fmt.Sprintf("%s %s address %s of this pod, seen on %s: want one host for each address, or the address in excludeIPs of its SpiderIPPool", c.MAC, does, c.Addr, c.Parent)
	s.log.Warn("another host has or wants the address of a pod", "pod", c.Owner, "address", c.Addr, "parent", c.Parent, "mac", c.MAC, "kind", c.Kind)
	s.mu.Lock()
	sandbox := s.owner(c.Parent, c.Addr)
	s.mu.Unlock()
	if att, ok := s.config.Records.Get(sandbox); ok {
		s.event(context.Background(), podOf(att), reasonConflict, text)
	}
}

// deaf tells of a parent on which others' claims are not heard.
func (s *Server) deaf(err error) {
	s.log.Error("others that claim addresses of pods are not noticed until that can be listened on", "error", err)
}

// macOf reads a MAC address; nil where there is none.
func macOf(text string) net.HardwareAddr {
	mac, err := net.ParseMAC(text)
	if err != nil {
		return nil
	}
	return mac
}
