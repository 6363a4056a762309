package cases

import (
	"strings"
	"testing"
)

// NetNS is a network namespace by its name under /run/netns.
type NetNS string

// NewNetNS makes a namespace with its loopback up; it is deleted with the test.
func NewNetNS(t *testing.T, name string) NetNS {
	t.Helper()
	Run(t, "ip", "netns", "add", name)
	t.Cleanup(func() {
		if strings.Contains("\n"+Run(t, "ip", "netns", "list"), "\n"+name) { // the test may have deleted it
			Run(t, "ip", "netns", "del", name)
		}
	})
	Run(t, "ip", "-n", name, "link", "set", "lo", "up")
	return NetNS(name)
}

// Path is the namespace's file.
func (n NetNS) Path() string { return "/run/netns/" + string(n) }

// Run runs a program in the namespace, with a /sys of its own; it must succeed.
func (n NetNS) Run(t *testing.T, name string, args ...string) string {
	t.Helper()
	return Run(t, "ip", n.exec(name, args)...)
}

// Try runs a program in the namespace.
func (n NetNS) Try(name string, args ...string) (string, error) {
	return Try("ip", n.exec(name, args)...)
}

// exec are the arguments that make `ip` run a program in the namespace.
func (n NetNS) exec(name string, args []string) []string {
	return append([]string{"netns", "exec", string(n), name}, args...)
}

// Link is what `ip -j -d link` says of a network device, as far as tests use it.
type Link struct {
	Index   int    `json:"ifindex"`
	Name    string `json:"ifname"`
	Parent  string `json:"link"`
	Master  string `json:"master"`
	Address string `json:"address"`
	MTU     int    `json:"mtu"`
	State   string `json:"operstate"`
}

// Links are the network devices of the host namespace, by name.
func Links(t *testing.T) map[string]Link {
	t.Helper()
	return linksByName(JSON[[]Link](t, "ip", "-j", "-d", "link", "show"))
}

// Links are the network devices of the namespace, by name.
func (n NetNS) Links(t *testing.T) map[string]Link {
	t.Helper()
	return linksByName(JSON[[]Link](t, "ip", "-n", string(n), "-j", "-d", "link", "show"))
}

// linksByName indexes links.
func linksByName(list []Link) map[string]Link {
	links := map[string]Link{}
	for _, link := range list {
		links[link.Name] = link
	}
	return links
}

// AddLink makes a network device in the host namespace with the arguments of `ip link add` and sets it up; it is
// deleted with the test, in whatever way the test has left it.
func AddLink(t *testing.T, name string, args ...string) {
	t.Helper()
	Run(t, "ip", append([]string{"link", "add", "name", name}, args...)...)
	t.Cleanup(func() {
		if _, there := Links(t)[name]; there { // it may be gone with a namespace or with its parent
			Run(t, "ip", "link", "del", name)
		}
	})
	Run(t, "ip", "link", "set", name, "up")
}

// AddVeth makes a pair of network devices, both up.
func AddVeth(t *testing.T, name, peer string) {
	t.Helper()
	AddLink(t, name, "type", "veth", "peer", "name", peer)
	Run(t, "ip", "link", "set", peer, "up")
}

// AddMacvlan makes a macvlan in bridge mode on a parent.
func AddMacvlan(t *testing.T, name, parent string) {
	t.Helper()
	AddLink(t, name, "link", parent, "type", "macvlan", "mode", "bridge")
}

// AddIPVLAN makes an ipvlan in layer 2 mode on a parent.
func AddIPVLAN(t *testing.T, name, parent string) {
	t.Helper()
	AddLink(t, name, "link", parent, "type", "ipvlan", "mode", "l2")
}

// AddVLAN makes a VLAN on a parent.
func AddVLAN(t *testing.T, name, parent, id string) {
	t.Helper()
	AddLink(t, name, "link", parent, "type", "vlan", "id", id)
}

// AddBond makes a bond in active-backup mode of links that exist.
func AddBond(t *testing.T, name string, members ...string) {
	t.Helper()
	AddLink(t, name, "type", "bond", "mode", "active-backup", "miimon", "100")
	for _, member := range members {
		Run(t, "ip", "link", "set", member, "down") // a bond takes in only links that are down
		Run(t, "ip", "link", "set", member, "master", name)
	}
}
