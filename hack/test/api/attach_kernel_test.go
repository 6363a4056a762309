package api

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"railhead/internal/attach/record"
	"railhead/internal/ipam/journal"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rtnl"
)

// contents are what there is in one network namespace, each as a text.
type contents struct {
	Links, Addresses, Routes, Rules []string
}

// contentsOf reads a namespace. Neighbours are left out, which come and go.
func contentsOf(c *rtnl.Client) (contents, error) {
	links, err1 := c.Links()
	addresses, err2 := c.Addresses()
	routes, err3 := c.Routes()
	rules, err4 := c.Rules()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return contents{}, err
	}
	names := map[int]string{}
	var all contents
	for _, l := range links {
		names[l.Index] = l.Name
		all.Links = append(all.Links, fmt.Sprintf("%s %s up:%v group:%d", l.Name, l.Kind, l.Up, l.Group))
	}
	for _, a := range addresses {
		all.Addresses = append(all.Addresses, fmt.Sprintf("%s %s", names[a.LinkIndex], a.Prefix))
	}
	for _, r := range routes {
		all.Routes = append(all.Routes, fmt.Sprintf("%d %s %s %s via %s", r.Table, r.Type, r.Dst, names[r.LinkIndex], r.Gateway))
	}
	for _, r := range rules {
		all.Rules = append(all.Rules, fmt.Sprintf("%s %d from %s to %s %s %d", r.Family, r.Priority, r.Src, r.Dst, r.Action, r.Table))
	}
	for _, list := range [][]string{all.Links, all.Addresses, all.Routes, all.Rules} {
		slices.Sort(list)
	}
	return all, nil
}

// inSandbox is what there is in the namespace of a path, and the addresses by interface.
func inSandbox(path string) (contents, map[string][]netip.Addr, error) {
	ns, err := netns.Open(path)
	if err != nil {
		return contents{}, nil, err
	}
	defer ns.Close()
	c, err := rtnl.Dial(&rtnl.Config{NetNS: ns.FD()})
	if err != nil {
		return contents{}, nil, err
	}
	defer c.Close()
	all, err := contentsOf(c)
	if err != nil {
		return contents{}, nil, err
	}
	names := map[int]string{}
	links, err1 := c.Links()
	addresses, err2 := c.Addresses()
	for _, l := range links {
		names[l.Index] = l.Name
	}
	found := map[string][]netip.Addr{}
	for _, a := range addresses {
		if a.Prefix.Addr().Is4() && !a.Prefix.Addr().IsLinkLocalUnicast() {
			found[names[a.LinkIndex]] = append(found[names[a.LinkIndex]], a.Prefix.Addr())
		}
	}
	return all, found, errors.Join(err1, err2)
}

// hasRails says what a pod's namespace lacks of eight rails with their addresses,
// rules and tables, and of its eth0; nil if that is nothing.
func (n *attachNode) hasRails(all contents, rails map[string]netip.Addr) error {
	var errs []error
	want := func(list []string, text string) {
		if !slices.Contains(list, text) {
			errs = append(errs, fmt.Errorf("no %q in %q", text, list))
		}
	}
	want(all.Routes, "254 unicast 0.0.0.0/0 eth0 via 10.212.0.1")
	for rail := range attachRails {
		name := fmt.Sprintf("net%d", 1+rail)
		want(all.Addresses, fmt.Sprintf("%s %s/24", name, rails[name]))
		want(all.Routes, fmt.Sprintf("%d unicast 0.0.0.0/0 %s via 10.%d.%d.254", 100+rail, name, n.net, 1+rail))
		if !slices.ContainsFunc(all.Rules, func(rule string) bool {
			var priority int
			_, err := fmt.Sscanf(rule, "inet %d from "+rails[name].String()+fmt.Sprintf("/32 to invalid Prefix lookup %d", 100+rail), &priority)
			return err == nil
		}) {
			errs = append(errs, fmt.Errorf("no rule from %s to table %d in %q", rails[name], 100+rail, all.Rules))
		}
	}
	if len(all.Links) != 1+1+attachRails {
		errs = append(errs, fmt.Errorf("links %q, want lo, eth0 and %d rails", all.Links, attachRails))
	}
	return errors.Join(errs...)
}

// nodeState is what there is on the node besides pods.
type nodeState struct {
	Kernel  contents
	Fabric  contents
	Files   []string // addresses of eth0 and results of the runtime
	Records []string // of attachments
}

// state reads what there is on the node.
func (n *attachNode) state(t *testing.T) nodeState {
	t.Helper()
	var s nodeState
	var errs [5]error
	s.Kernel, errs[0] = contentsOf(n.kernel)
	s.Fabric, errs[1] = contentsOf(kernelIn(t, int(n.fabric.Fd())))
	for i, pattern := range []string{filepath.Join(n.leases(), "cluster", "10.*"), filepath.Join(n.run, "results", "results", "*")} {
		files, err := filepath.Glob(pattern)
		errs[2+i] = err
		for _, f := range files {
			s.Files = append(s.Files, filepath.Base(f))
		}
	}
	for _, a := range n.records(t) {
		s.Records = append(s.Records, a.ContainerID+" "+string(a.State))
	}
	slices.Sort(s.Records)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return s
}

// records are those of attachments, as the command line reads them.
func (n *attachNode) records(t *testing.T) []record.Attachment {
	t.Helper()
	list, damage, err := record.Read(os.DirFS(n.attachments()), record.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || damage == journal.DamageCorrupt {
		t.Fatalf("records: %v, damage %v", err, damage)
	}
	return list
}
