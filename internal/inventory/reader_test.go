package inventory

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rtnl"
)

// address returns the nth of many addresses.
func address(n int) netip.Addr { return netip.AddrFrom4([4]byte{172, 16, byte(n >> 8), byte(n)}) }

func TestReadSimulatedNode(t *testing.T) {
	t.Parallel()
	n := newSimNode(t, simCards{pfs: 2, vfs: 3})
	_, s := n.read(nil, Changes{})
	if len(s.Problems) != 0 {
		t.Errorf("problems: %v", s.Problems)
	}
	if len(s.Devices) != 8 || len(s.GPUs) != 2 {
		t.Fatalf("%d devices and %d GPUs, want 8 and 2", len(s.Devices), len(s.GPUs))
	}
	for _, d := range s.Devices {
		if d.RDMA == nil || len(d.RDMA.Ports) != 1 || len(d.RDMA.Ports[0].GIDs) != 2 || len(d.RDMA.CharDevices) != 2 || len(d.Netdevs) != 1 || d.Rail == nil {
			t.Errorf("%s is not complete: %+v", d.ID, d)
		}
		if d.RDMA.Ports[0].Netdev != d.Netdevs[0].Name || d.RDMA.Ports[0].Gigabits != 400 {
			t.Errorf("port of %s: %+v", d.ID, d.RDMA.Ports[0])
		}
	}
}

// TestReadChange reads what changed, which must show what a Reader sees that
// starts afresh.
func TestReadChange(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		before func(n *simNode) // a change that was read before
		change func(n *simNode) Changes
		isSame bool // whether the snapshot stays the same
	}{
		{name: "nothing", change: func(*simNode) Changes { return Changes{} }, isSame: true},
		{
			name:   "nothing, of which something is said",
			change: func(n *simNode) Changes { return pathChange(n.functions[1].path) }, isSame: true,
		},
		{name: "address", change: func(n *simNode) Changes {
			return n.addAddress(n.functions[0], n.functions[0].link, n.functions[0].netdev, address(1))
		}},
		{
			name: "address gone",
			before: func(n *simNode) {
				n.addAddress(n.functions[0], n.functions[0].link, n.functions[0].netdev, address(1))
			},
			change: func(n *simNode) Changes {
				return n.removeAddresses(n.functions[0], n.functions[0].link, n.functions[0].netdev)
			},
		},
		{name: "address of a macvlan", change: func(n *simNode) Changes { return n.addMacvlan(n.functions[0], address(1)) }},
		{
			name:   "macvlan gone",
			before: func(n *simNode) { n.addMacvlan(n.functions[0], address(1)) },
			change: func(n *simNode) Changes {
				changed := n.removeAddresses(n.functions[0], n.links, fmt.Sprintf("macvlan%d", n.links))
				n.kernel.Change(func(k *fakekernel.Facts) {
					k.Links = slices.DeleteFunc(k.Links, func(l rtnl.Link) bool { return l.Index == n.links })
				})
				return changed
			},
		},
		{
			name:   "address of a bond",
			before: func(n *simNode) { n.bond(n.functions[0], n.functions[3]) },
			change: func(n *simNode) Changes { return n.addAddress(n.functions[0], n.links, "bond0", address(1)) },
		},
		{name: "port state, of which nothing is said", change: func(n *simNode) Changes { return n.setPortState(n.functions[2], false) }},
		{name: "link down", change: func(n *simNode) Changes {
			n.setPortState(n.functions[0], false)
			return n.changeLink(n.functions[0].link, func(l *rtnl.Link) { l.Running = false })
		}},
		{name: "MTU", change: func(n *simNode) Changes {
			return n.changeLink(n.functions[0].link, func(l *rtnl.Link) { l.MTU = 1500 })
		}},
		{name: "speed", change: func(n *simNode) Changes { return n.setSpeed(n.functions[0], 100000) }},
		{name: "name of an RDMA device", change: func(n *simNode) Changes { return n.renameRDMA(n.functions[1], "rocep1s0") }},
		{name: "name of a netdev", change: func(n *simNode) Changes { return n.renameNetdev(n.functions[1], "rail0v0") }},
		{name: "names of RDMA devices swapped", change: func(n *simNode) Changes {
			a, b := n.functions[1], n.functions[2]
			nameA, nameB := a.rdma, b.rdma
			changed := n.renameRDMA(a, "temporary")
			changed.merge(n.renameRDMA(b, nameA))
			changed.merge(n.renameRDMA(a, nameB))
			return changed
		}},
		{name: "VF moved away", change: func(n *simNode) Changes { return n.move(n.functions[1]) }},
		{
			name:   "VF came back",
			before: func(n *simNode) { n.move(n.functions[1]) },
			change: func(n *simNode) Changes { return n.move(n.functions[1]) },
		},
		{name: "driver unbound", change: func(n *simNode) Changes { return n.unbind(n.functions[1]) }},
		{
			name:   "driver bound",
			before: func(n *simNode) { n.unbind(n.functions[1]) },
			change: func(n *simNode) Changes { return n.bind(n.functions[1]) },
		},
		{name: "driver reloaded, of which nothing is said", change: func(n *simNode) Changes {
			n.unbind(n.functions[1])
			n.bind(n.functions[1])
			return Changes{Names: map[string]bool{n.functions[1].id: true}}
		}},
		{name: "VFs disabled", change: func(n *simNode) Changes { return n.removeVFs(n.functions[0]) }},
		{
			name:   "VFs enabled",
			before: func(n *simNode) { n.removeVFs(n.functions[0]) },
			change: func(n *simNode) Changes { return n.addVFs(n.functions[0], 3) },
		},
		{name: "subfunction", change: func(n *simNode) Changes { return n.addSF(n.functions[0], 4) }},
		{name: "card", change: func(n *simNode) Changes { return pathChange(n.addPF().path) }},
		{name: "firmware, of which something is said", change: func(n *simNode) Changes {
			path := n.functions[1].path + "/infiniband/" + n.functions[1].rdma
			n.write("sys/"+path+"/board_id", "MT_0000000001")
			return pathChange(path)
		}},
		{name: "attribute that cannot be read", change: func(n *simNode) Changes {
			path := n.functions[1].path + "/infiniband/" + n.functions[1].rdma
			n.remove("sys/" + path + "/board_id")
			n.mkdir("sys/" + path + "/board_id")
			return pathChange(path)
		}},
		{name: "attribute of a PCI function that cannot be read", change: func(n *simNode) Changes {
			n.write("sys/"+n.functions[1].path+"/vendor", "Mellanox")
			return pathChange(n.functions[1].path)
		}},
		{name: "attribute of a netdev that cannot be read", change: func(n *simNode) Changes {
			path := n.functions[1].path + "/net/" + n.functions[1].netdev
			n.write("sys/"+path+"/dev_port", "first")
			return pathChange(path)
		}},
		{name: "attribute of a character device that cannot be read", change: func(n *simNode) Changes {
			path := fmt.Sprintf("%s/infiniband_verbs/uverbs%d", n.functions[1].path, n.functions[1].char)
			n.write("sys/"+path+"/dev", "none")
			return pathChange(path)
		}},
		{name: "settings that cannot be read", change: func(n *simNode) Changes {
			n.kernel.Refuse(fakekernel.GetLinkModes, unix.EIO, n.functions[1].link)
			return linkChange(n.functions[1].link)
		}},
		{name: "port that cannot be read", change: func(n *simNode) Changes {
			n.kernel.Refuse(fakekernel.GetPort, unix.EIO, int(n.functions[1].device))
			return Changes{}
		}},
		{name: "everything", change: func(n *simNode) Changes {
			n.setPortState(n.functions[0], false)
			return everything()
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := newSimNode(t, simCards{pfs: 2, vfs: 2})
			if tt.before != nil {
				tt.before(n)
			}
			facts, before := n.read(nil, Changes{})
			changed := tt.change(n)
			facts, after := n.read(facts, changed)
			if diff := n.check(after); diff != "" {
				t.Fatalf("after %+v (-fresh +changed):\n%s", changed, diff)
			}
			if same := diff(t, before, after) == ""; same != tt.isSame {
				t.Errorf("the snapshot is the same: %t, want %t", same, tt.isSame)
			}
			_, again := n.read(facts, Changes{})
			if diff := n.check(again); diff != "" {
				t.Errorf("one read later (-fresh +changed):\n%s", diff)
			}
			facts, _ = n.read(nil, Changes{})
			_, again = n.read(facts, Changes{})
			if diff := n.check(again); diff != "" {
				t.Errorf("one read after a fresh one (-fresh +changed):\n%s", diff)
			}
		})
	}
}

// TestReadChanges makes changes at random, several at a time.
func TestReadChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 0))
			n := newSimNode(t, simCards{pfs: 2, vfs: 3})
			facts, _ := n.read(nil, Changes{})
			var history []string
			for range 25 {
				var changed Changes
				for range 1 + r.IntN(3) {
					name, c := n.changeAtRandom(r)
					history = append(history, name)
					changed.merge(c)
				}
				var s *Snapshot
				facts, s = n.read(facts, changed)
				if diff := n.check(s); diff != "" {
					t.Fatalf("after %s (-fresh +changed):\n%s", strings.Join(history, ", "), diff)
				}
			}
		})
	}
}

// changeAtRandom changes something, and says what.
func (n *simNode) changeAtRandom(r *rand.Rand) (string, Changes) {
	n.tb.Helper()
	f := n.functions[r.IntN(len(n.functions))]
	switch kind := r.IntN(13); {
	case kind == 0 && f.pf == nil:
		if len(f.vfs) > 0 {
			return "remove VFs of " + f.id, n.removeVFs(f)
		}
		return "add VFs to " + f.id, n.addVFs(f, 1+r.IntN(4))
	case kind == 1 && f.pf == nil && f.isBound:
		return "add subfunction to " + f.id, n.addSF(f, n.links)
	case kind == 2 && f.pf != nil && f.isBound:
		return "unbind " + f.id, n.unbind(f)
	case kind == 2 && !f.isBound:
		return "bind " + f.id, n.bind(f)
	case !f.isBound:
		return "nothing", Changes{}
	case kind == 3:
		return "move " + f.id, n.move(f)
	case !f.isHere:
		return "nothing", Changes{}
	case kind == 4:
		return "rename RDMA of " + f.id, n.renameRDMA(f, fmt.Sprintf("rdma%d", r.IntN(1_000_000)))
	case kind == 5:
		return "rename netdev of " + f.id, n.renameNetdev(f, fmt.Sprintf("net%d", r.IntN(1_000_000)))
	case kind == 6:
		return "port state of " + f.id, n.setPortState(f, r.IntN(2) == 0)
	case kind == 7:
		return "speed of " + f.id, n.setSpeed(f, 100000*(1+r.IntN(2)))
	case kind == 8 && len(f.gids) < 10:
		return "macvlan on " + f.id, n.addMacvlan(f, address(r.IntN(1<<16)))
	case kind == 9 && len(f.gids) < 10:
		return "address of " + f.id, n.addAddress(f, f.link, f.netdev, address(r.IntN(1<<16)))
	case kind == 10:
		return "no address of " + f.id, n.removeAddresses(f, f.link, f.netdev)
	default:
		return "MTU of " + f.id, n.changeLink(f.link, func(l *rtnl.Link) { l.MTU = 1500 + r.IntN(7500) })
	}
}
