package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/rtnl"
)

// finishLinks takes over what routing says of the links, and numbers those that are made.
func (p *planner) finishLinks() {
	taken := map[int]bool{}
	for _, l := range p.links {
		taken[l.Index] = true
	}
	next := firstIndex
	for n := range p.plan.Interfaces {
		i := &p.plan.Interfaces[n]
		for _, l := range p.plan.Routing.Links {
			if l.Owner != i.Name {
				continue
			}
			i.Table = int(l.Table)
			if l.MAC != nil {
				i.MAC = l.MAC.String()
			}
			if i.TxQueueLen == 0 {
				i.TxQueueLen = int(l.TxQueueLen)
			}
		}
		if !i.made() {
			continue
		}
		for taken[next] {
			next++
		}
		i.Index = next
		next++
	}
	for _, note := range p.plan.Routing.Notes {
		text := note.Text
		if note.Owner != "" {
			text = note.Owner + ": " + text
		}
		p.notes = append(p.notes, text)
	}
	p.plan.Notes = p.notes
}

// settings lists what is written below /proc/sys. Links announce their
// addresses when these change, as those that CNI's own plugins make do.
func (p *planner) settings(pod Pod) error {
	var errs []error
	ipv6 := false
	for _, i := range p.plan.Interfaces {
		if i.Kind == Foreign {
			continue
		}
		ipv6 = ipv6 || hasIPv6(i.Addresses)
		notify := func(path string) {
			p.plan.Sysctls = append(p.plan.Sysctls, routing.Sysctl{Owner: i.Name, Path: path, Value: "1", Optional: true})
		}
		if slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Addr().Is4() }) {
			notify("net/ipv4/conf/" + i.Name + "/arp_notify")
		}
		if hasIPv6(i.Addresses) {
			notify("net/ipv6/conf/" + i.Name + "/ndisc_notify")
		}
	}
	if ipv6 {
		// A link-local address that is not tentative can ask gateways at once.
		p.plan.Defaults = []routing.Sysctl{{Path: "net/ipv6/conf/default/accept_dad", Value: "0", Optional: true}}
	}
	p.plan.Sysctls = append(p.plan.Sysctls, p.plan.Routing.Pod.Sysctls...)
	for _, i := range pod.Interfaces {
		all, err := tuned(i)
		errs = append(errs, err)
		p.plan.Sysctls = append(p.plan.Sysctls, all...)
	}
	p.beginWith("net/ipv6/conf", "accept_ra_defrtr")
	return errors.Join(errs...)
}

// beginWith has all links begin with a setting that each of them is given: to open a
// file for each takes longer than anything else of it. Of IPv4, links that are there
// already would change with the default.
func (p *planner) beginWith(dir, name string) {
	if p.plan.Routing.Veth != nil {
		return
	}
	value := ""
	for _, i := range p.plan.Interfaces {
		if i.Kind == Foreign {
			continue
		}
		file := dir + "/" + i.Name + "/" + name
		at := slices.IndexFunc(p.plan.Sysctls, func(s routing.Sysctl) bool { return s.Path == file })
		if at < 0 || value != "" && value != p.plan.Sysctls[at].Value {
			return
		}
		value = p.plan.Sysctls[at].Value
	}
	if value != "" {
		p.plan.Defaults = append(p.plan.Defaults, routing.Sysctl{Path: dir + "/default/" + name, Value: value, Optional: true})
	}
}

// removed finds the routes that are in the way, as they are.
func (p *planner) removed() error {
	if len(p.plan.Routing.Pod.Remove) == 0 {
		return nil
	}
	routes, err := p.pod.Routes()
	if err != nil {
		return fmt.Errorf("routes in %s: %w", p.plan.NetNS, err)
	}
	for _, r := range hopByHop(routes) {
		rest, isLeft := only(r, func(hop rtnl.NextHop) bool { return !p.removes(r, hop) })
		if len(waysOf(rest)) == len(waysOf(r)) && isLeft {
			continue
		}
		p.plan.Before.Routes = append(p.plan.Before.Routes, r)
		if isLeft {
			p.plan.Before.Rest = append(p.plan.Before.Rest, rest)
		}
	}
	return nil
}

// removes says whether a way of a route is in the way of ours.
func (p *planner) removes(r rtnl.Route, hop rtnl.NextHop) bool {
	return slices.ContainsFunc(p.plan.Routing.Pod.Remove, func(remove routing.Route) bool {
		link, ok := p.inPod(remove.Dev)
		return ok && r.Table == int(remove.Table) && r.Dst == remove.Dst && hop.LinkIndex == link.Index &&
			(!remove.Via.IsValid() || hop.Gateway == remove.Via)
	})
}

// before notes the values of settings that stay when the pod's links go.
func (p *planner) before() error {
	seen := map[string]bool{}
	for _, s := range slices.Concat(p.plan.Defaults, p.plan.Sysctls) {
		if p.goes(s.Path) || seen[s.Path] {
			continue
		}
		seen[s.Path] = true
		value, err := p.a.sysctls().read(s.Path)
		switch {
		case s.Optional && errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil && s.Owner != "":
			return fmt.Errorf("interface %s: %w", s.Owner, err)
		case err != nil:
			return err
		}
		s.Value, s.Optional = value, true
		p.plan.Before.Sysctls = append(p.plan.Before.Sysctls, s)
	}
	return nil
}

// goes says whether a setting is of a link that is not there when the pod goes.
func (p *planner) goes(path string) bool { return p.plan.brings(linkOf(path)) }

// linkOf is the link that a setting is of: net, ipv4, conf, the link, the name. It is
// "" where that is no link's.
func linkOf(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) != 5 || parts[2] != "conf" && parts[2] != "neigh" {
		return ""
	}
	return parts[3]
}

// ofLink is the path of a link's setting for another link.
func ofLink(path, link string) string {
	parts := strings.Split(path, "/")
	parts[3] = link
	return strings.Join(parts, "/")
}
