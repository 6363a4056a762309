package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"railhead/internal/check"
	"railhead/internal/golden"
	"railhead/internal/inventory"
	"railhead/internal/kernel/archive"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// unpacked is a copy of a node and what is read there.
type unpacked struct {
	root     string
	fs       sysfs.FS
	facts    *inventory.Facts
	snapshot *inventory.Snapshot
}

func unpack(t *testing.T, text []byte) unpacked {
	t.Helper()
	n := unpacked{root: t.TempDir()}
	if err := archive.Unpack(text, n.root); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	n.fs = sysfs.New(n.root)
	r, err := inventory.NewArchiveReader(n.fs)
	if err != nil {
		t.Fatal(err)
	}
	n.facts = r.Read(nil, inventory.Changes{All: true})
	n.snapshot = inventory.Join(n.facts, inventory.Options{})
	return n
}

// gather reads the settings that go with a snapshot.
func (n unpacked) gather(s *inventory.Snapshot) *check.Node {
	others := len(n.facts.Netlink.Elsewhere)
	return check.Gather(n.fs, s, &others)
}

// options compare what the inventory has.
func options() cmp.Options {
	return cmp.Options{
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	}
}

// TestMachines captures each machine of the inventory's tests, and looks at the
// archive as at the machine.
func TestMachines(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../internal/inventory/testdata/machines/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no archives of machines: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			n := unpack(t, text)
			compareKept(t, n)
			compareHidden(t, n)
		})
	}
}

// compareKept wants with addresses what the node has.
func compareKept(t *testing.T, n unpacked) {
	t.Helper()
	text, left, err := capture(n.root, nil)
	if err != nil || len(left) > 0 {
		t.Fatalf("left out: %q, error %v", left, err)
	}
	got := unpack(t, text)
	// What is not exported is of functions of no interest, which are not copied.
	if diff := cmp.Diff(n.facts, got.facts, options(), cmpopts.IgnoreUnexported(inventory.Facts{})); diff != "" {
		t.Errorf("facts (-node +archive):\n%s", diff)
	}
	compareNodes(t, n.gather(n.snapshot), got.gather(got.snapshot))
}

// compareHidden wants without addresses what the node would have had with
// other addresses, and that none of its own is left.
func compareHidden(t *testing.T, n unpacked) {
	t.Helper()
	p := testPseudonyms(t)
	text, left, err := capture(n.root, p)
	if err != nil || len(left) > 0 {
		t.Fatalf("left out: %q, error %v", left, err)
	}
	got := unpack(t, text)
	findings := check.Run(n.gather(n.snapshot), check.Wishes{})
	hideSnapshot(t, p, n.snapshot)
	compareNodes(t, n.gather(n.snapshot), got.gather(got.snapshot))
	if diff := cmp.Diff(identities(findings), identities(check.Run(got.gather(got.snapshot), check.Wishes{}))); diff != "" {
		t.Errorf("findings (-node +archive):\n%s", diff)
	}
	for _, address := range addressesOf(p, n.facts) {
		if strings.Contains(string(text), address) {
			t.Errorf("address %s is still there", address)
		}
	}
}

func compareNodes(t *testing.T, want, got *check.Node) {
	t.Helper()
	if diff := cmp.Diff(want, got, options()); diff != "" {
		t.Errorf("node (-node +archive):\n%s", diff)
	}
	wishes := check.Wishes{NetNSMode: "exclusive", VFs: 12}
	if diff := cmp.Diff(check.Run(want, wishes), check.Run(got, wishes)); diff != "" {
		t.Errorf("findings (-node +archive):\n%s", diff)
	}
}

// identities tells findings apart without their words, which have addresses.
func identities(findings []check.Finding) []string {
	var list []string
	for _, f := range findings {
		list = append(list, fmt.Sprintf("%s %s", f.Severity, f.ID))
	}
	return list
}

// hideSnapshot gives a snapshot other addresses.
func hideSnapshot(t *testing.T, p *pseudonyms, s *inventory.Snapshot) {
	t.Helper()
	hide := func(address *string, replace replacement) {
		if *address == "" {
			return
		}
		var err error
		if *address, err = replace(p, *address); err != nil {
			t.Error(err)
		}
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		for k := range d.Netdevs {
			hide(&d.Netdevs[k].Address, (*pseudonyms).linkText)
			for a := range d.Netdevs[k].Addresses {
				d.Netdevs[k].Addresses[a] = p.prefix(d.Netdevs[k].Addresses[a])
			}
		}
		if d.RDMA == nil {
			continue
		}
		hide(&d.RDMA.NodeGUID, (*pseudonyms).guidText)
		hide(&d.RDMA.SysImageGUID, (*pseudonyms).guidText)
		for i := range d.RDMA.Ports {
			port := &d.RDMA.Ports[i]
			if port.GUID != "" {
				hide(&port.GUID, (*pseudonyms).guidText)
			}
			for k := range port.GIDs {
				g := &port.GIDs[k]
				hide(&g.GID, (*pseudonyms).gidText)
				if g.Address.IsValid() {
					g.Address = netip.MustParseAddr(g.GID).Unmap()
				}
			}
		}
	}
}

// addressesOf returns all addresses of a node that have a pseudonym, in all
// forms in which they could stand in an archive.
func addressesOf(p *pseudonyms, f *inventory.Facts) []string {
	var list []string
	add := func(replace replacement, forms ...string) {
		if other, err := replace(p, forms[0]); err != nil || other == forms[0] {
			return // zero, loopback and such
		}
		for _, form := range forms {
			list = append(list, form, strings.ReplaceAll(form, ":", ""))
		}
	}
	ip := func(a netip.Addr) {
		if a.IsValid() && p.ip(a) != a {
			b := a.As16()
			list = append(list, a.String(), formatGroups(b[:]))
		}
	}
	addLinks := func(links []rtnl.Link, addresses []rtnl.Address) {
		for _, l := range links {
			add((*pseudonyms).linkText, l.Address, strings.ToUpper(l.Address))
			add((*pseudonyms).linkText, l.PermAddress)
			add((*pseudonyms).switchText, l.PhysSwitchID)
		}
		for _, a := range addresses {
			ip(a.Prefix.Addr())
			ip(a.Peer.Addr())
		}
	}
	addRDMA := func(ib []sysfs.IBDevice, rdma []rdmanl.Device) {
		for _, d := range ib {
			add((*pseudonyms).guidText, d.NodeGUID, reversed(d.NodeGUID))
			add((*pseudonyms).guidText, d.SysImageGUID, reversed(d.SysImageGUID))
			for _, port := range d.Ports {
				for _, g := range port.GIDs {
					add((*pseudonyms).gidText, g.GID)
				}
			}
		}
		for _, d := range rdma {
			add((*pseudonyms).guidText, d.NodeGUID)
			add((*pseudonyms).guidText, d.SysImageGUID)
		}
	}
	addLinks(f.Netlink.Links, f.Netlink.Addresses)
	addRDMA(f.IB, f.Netlink.RDMA)
	for _, n := range f.Netdevs {
		add((*pseudonyms).linkText, n.Address)
		add((*pseudonyms).switchText, n.PhysSwitchID)
	}
	for _, e := range f.Netlink.Elsewhere {
		addLinks(e.Links, e.Addresses)
		addRDMA(e.IB, e.RDMA)
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// reversed is a GUID from its end, as mlx5 names the switch in a card.
func reversed(guid string) string {
	b, _ := hex.DecodeString(strings.ReplaceAll(guid, ":", ""))
	slices.Reverse(b)
	return hex.EncodeToString(b)
}

// TestGolden captures a node that is full of secrets.
func TestGolden(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/node.txtar")
	if err != nil {
		t.Fatal(err)
	}
	n := unpack(t, text)
	p := testPseudonyms(t)
	for name, addresses := range map[string]*pseudonyms{"hidden.txtar": p, "kept.txtar": nil} {
		got, left, err := capture(n.root, addresses)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := capture(n.root, addresses)
		if diff := cmp.Diff(string(got), string(again)); diff != "" || err != nil {
			t.Errorf("captured again, error %v (-first +second):\n%s", err, diff)
		}
		if strings.Contains(string(got), "hunter2") {
			t.Errorf("%s holds a secret", name)
		}
		for _, line := range left {
			if addresses != nil {
				line = string(p.names([]byte(line)))
			}
			if strings.Contains(line, "hunter2") || strings.Contains(line, n.root) || !strings.Contains(string(got), line) {
				t.Errorf("%s: left out %q: want it in the archive, without secrets and places of the copy", name, line)
			}
		}
		golden.Equal(t, filepath.Join("testdata", name), got)
		unpack(t, got)
		if addresses == nil {
			continue
		}
		for _, address := range addressesOf(p, n.facts) {
			if strings.Contains(string(got), address) {
				t.Errorf("address %s is still there", address)
			}
		}
	}
}

// TestNetlinkFields holds what netlink.json can hold against a list: whoever
// adds a field that can hold text or an address says here which it is, and in
// hideNetlink what becomes of it.
func TestNetlinkFields(t *testing.T) {
	t.Parallel()
	hidden := []string{
		"RDMA.NodeGUID", "RDMA.SysImageGUID", "RDMA.Ports.SubnetPrefix", "RDMA.Unknown", "RDMA.Ports.Unknown",
		"Links.Alias", "Links.Address", "Links.PermAddress", "Links.PhysSwitchID",
		"Addresses.Prefix", "Addresses.Peer", "Addresses.Broadcast",
		"IB.NodeGUID", "IB.SysImageGUID", "IB.Ports.GIDs.GID",
	}
	harmless := []string{
		"System.NetNSMode",
		"RDMA.Name", "RDMA.NodeType", "RDMA.Firmware", "RDMA.Protocol", "RDMA.Type", "RDMA.Parent",
		"RDMA.Ports.DeviceName", "RDMA.Ports.State", "RDMA.Ports.PhysState", "RDMA.Ports.LinkLayer", "RDMA.Ports.NetdevName",
		"Links.Name", "Links.AltNames", "Links.Kind", "Links.OperState", "Links.ParentBus", "Links.ParentDev",
		"Links.PhysPortName", "Links.BondMode", "Links.Mode",
		"Addresses.Label", "Addresses.Scope",
		"Settings.Duplex", "Settings.Port",
		"Path",
		"IB.Name", "IB.Path", "IB.DevicePath", "IB.Parent", "IB.NodeType", "IB.Firmware", "IB.BoardID", "IB.HCAType",
		"IB.Ports.LinkLayer", "IB.Ports.State", "IB.Ports.PhysState", "IB.Ports.Rate.Speed",
		"IB.Ports.GIDs.Type", "IB.Ports.GIDs.Netdev",
	}
	known := append(hidden, harmless...)
	found := map[string]bool{}
	textFields(reflect.TypeFor[inventory.Netlink](), "", found)
	for field := range found {
		if field = strings.TrimPrefix(field, "Elsewhere."); !slices.Contains(known, field) {
			t.Errorf("field %s of netlink.json is not known", field)
		}
	}
	for _, field := range known {
		if !found[field] && !found["Elsewhere."+field] {
			t.Errorf("field %s is not in netlink.json", field)
		}
	}
}

// textFields finds the fields that can hold text or an address.
func textFields(typ reflect.Type, name string, found map[string]bool) {
	switch {
	case typ == reflect.TypeFor[netip.Prefix](), typ == reflect.TypeFor[netip.Addr](), typ.Kind() == reflect.String, typ == reflect.TypeFor[[]byte](), typ.Kind() == reflect.Interface:
		found[name] = true
	case typ.Kind() == reflect.Pointer, typ.Kind() == reflect.Slice, typ.Kind() == reflect.Map:
		textFields(typ.Elem(), name, found)
	case typ.Kind() == reflect.Struct:
		for field := range typ.Fields() {
			textFields(field.Type, strings.TrimPrefix(name+"."+field.Name, "."), found)
		}
	}
}

// TestHideBroadcast wants the broadcast address of a subnet to be that of its
// pseudonym, and any other to be hidden like an address.
func TestHideBroadcast(t *testing.T) {
	t.Parallel()
	c := copier{addresses: testPseudonyms(t)}
	prefix := netip.MustParsePrefix("10.20.30.40/24")
	addresses := []rtnl.Address{
		{Prefix: prefix, Broadcast: netip.MustParseAddr("10.20.30.255")},
		{Prefix: prefix, Broadcast: netip.MustParseAddr("10.20.30.7")},
		{Prefix: prefix},
	}
	c.hideAddresses(addresses)
	hidden := c.addresses.prefix(prefix)
	want := []rtnl.Address{
		{Prefix: hidden, Broadcast: rtnl.SubnetBroadcast(hidden)},
		{Prefix: hidden, Broadcast: c.addresses.ip(netip.MustParseAddr("10.20.30.7"))},
		{Prefix: hidden},
	}
	if !slices.Equal(want, addresses) || addresses[1].Broadcast == netip.MustParseAddr("10.20.30.7") {
		t.Errorf("got %+v, want %+v", addresses, want)
	}
}

// TestLeftOut wants each thing that cannot be copied named in the archive, in
// one line, and the rest copied.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	const function = "sys/devices/pci0000:00/0000:00:03.0"
	n := unpack(t, []byte(strings.ReplaceAll(`-- etc/containerd/config.toml --
version = hunter2
-- sys/bus/pci/devices/{} --
0000:00:03.0 -> ../../../devices/pci0000:00/0000:00:03.0
-- FUNCTION/{} --
class: 0x020000
vendor: 0x15b3
-- FUNCTION/local_cpulist/ --
-- FUNCTION/numa_node --
-- FUNCTION/device/{} --
of another kind: x
`, "FUNCTION", function)))
	for name, text := range map[string]string{
		"subsystem_vendor": "\x01\n",
		"subsystem_device": strings.Repeat("0", 5000),
		"sriov_totalvfs":   "1\n-- x --\n",
	} {
		if err := os.WriteFile(filepath.Join(n.root, function, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, left, err := capture(n.root, testPseudonyms(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"/etc/containerd/config.toml: ",
		`file "` + function + `/subsystem_vendor": `,
		"/" + function + "/subsystem_device: ",
		`file "` + function + `/sriov_totalvfs": `,
		"/" + function + "/local_cpulist: ",
	} {
		if !slices.ContainsFunc(left, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("nothing about %s in %q", want, left)
		}
		if !strings.Contains(string(text), "\n  "+want) {
			t.Errorf("nothing about %s in the archive:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "hunter2") {
		t.Error("the archive holds a secret")
	}
	got := unpack(t, text)
	if len(got.facts.PCI) != 1 || got.facts.PCI[0].Vendor != 0x15b3 {
		t.Errorf("functions %v, want the one", got.facts.PCI)
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	denied := &fs.PathError{Op: "open", Path: "/tmp/copy/sys/x", Err: unix.EACCES}
	tests := []struct {
		name string
		err  error
		want []string
	}{
		{"denied", denied, []string{"/sys/x: permission denied"}},
		{"denied, wrapped", fmt.Errorf("reading: %w", denied), []string{"/sys/x: permission denied"}},
		{"too long", errors.New("/tmp/copy/sys/x: too long"), []string{"/sys/x: too long"}},
		{"not there", fs.ErrNotExist, nil},
		{"no value", &fs.PathError{Op: "read", Path: "/sys/x", Err: unix.EINVAL}, nil},
		{"gone", &fs.PathError{Op: "read", Path: "/sys/x", Err: unix.ENODEV}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := &copier{root: "/tmp/copy", fs: sysfs.New("/tmp/copy")}
			c.unreadable("sys/x", tt.err)
			c.unreadable("sys/x", tt.err) // is told once
			if diff := cmp.Diff(tt.want, c.left); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
		})
	}
}
