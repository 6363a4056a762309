package simulation

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"time"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/rtnl"
)

// ground is the real node that cards stand on, with what it said of its links
// last.
type ground struct {
	node      node.Node
	client    *rtnl.Client
	links     []rtnl.Link
	addresses []rtnl.Address
	searched  time.Duration // when processes were looked for last
	denied    int           // how many of them may not be looked into
}

// newGround reads the links of a node. Close it after use.
func newGround(n node.Node) (*ground, error) {
	client, err := n.Own().Links()
	if err != nil {
		return nil, err
	}
	g := &ground{node: n, client: client, searched: -searchEvery}
	if _, err := g.read(); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return g, nil
}

func (g *ground) close() error { return g.client.Close() }

// read tells whether anything has changed since it was called last.
func (g *ground) read() (isNew bool, err error) {
	links, errLinks := g.client.Links()
	addresses, errAddresses := g.client.Addresses()
	if err := errors.Join(errLinks, errAddresses); err != nil {
		return false, fmt.Errorf("links of the node: %w", err)
	}
	isNew = !reflect.DeepEqual(links, g.links) || !reflect.DeepEqual(addresses, g.addresses)
	g.links, g.addresses = links, addresses
	return isNew, nil
}

// footing is the netdev that a card stands on.
type footing struct {
	link      rtnl.Link
	addresses []rtnl.Address
}

// find returns a netdev, nil where it is away.
func (g *ground) find(netdev string) *footing {
	i := slices.IndexFunc(g.links, func(l rtnl.Link) bool { return l.Name == netdev })
	if i < 0 {
		return nil
	}
	f := &footing{link: g.links[i]}
	for _, a := range g.addresses {
		if a.LinkIndex == f.link.Index {
			f.addresses = append(f.addresses, a)
		}
	}
	return f
}

// netlink is the netdev as the card's driver would have made it.
func (s *footing) netlink(f *function) rtnl.Link {
	l := s.link
	if f.card.state.isDown && l.Running {
		l.Running, l.OperState = false, "down"
	}
	if f.pci == "" {
		return l
	}
	l.Kind, l.ParentIndex, l.ParentNetNS = "", 0, nil
	l.ParentBus, l.ParentDev, l.PhysPortName, l.PermAddress = "pci", f.pci, "p0", l.Address
	return l
}

// newMachineOn makes cards on the netdevs of a real node, with files below a
// directory. Cards whose netdev the node does not have are left out.
func newMachineOn(g *ground, s *Scenario, dir string) (*machine, error) {
	m := &machine{scenario: s, ground: g, dir: dir}
	if err := m.findGround(); err != nil {
		return nil, err
	}
	m.host.id = g.node.Own().ID()
	m.addRDMA()
	m.addCards()
	m.tellGround()
	return m, m.host.tree.done()
}

// findGround finds out which cards there are, and on what kernel.
func (m *machine) findGround() (err error) {
	if m.release, err = m.ground.node.FS().KernelRelease(); err != nil {
		return err
	}
	only := *m.scenario
	only.Cards = slices.DeleteFunc(slices.Clone(only.Cards), func(c Card) bool { return m.ground.find(c.Netdev) == nil })
	if len(only.Cards) == 0 {
		return fmt.Errorf("cards: the node has none of the netdevs that they stand on, but %s", m.ground.names())
	}
	m.scenario = &only
	return m.addHost()
}

func (g *ground) names() string {
	var names []string
	for _, l := range g.links {
		names = append(names, l.Name)
	}
	return some(names)
}

// stand brings a card to what its netdev is. What went through it before went
// as the netdev was then.
func (c *card) stand(g *ground, moment func() time.Duration) {
	f := c.functions[0]
	if f.real = g.find(f.netdev); f.real != nil {
		f.link, f.mac = f.real.link.Index, f.real.link.Address
		if f.place == nil {
			f.identify()
		}
	}
	isCut, payload := f.real == nil || !f.real.link.Up || !f.real.link.Running, c.payload
	if f.real != nil {
		payload = payloadOf(f.real.link.MTU, c.spec.LinkLayer)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if isCut == c.isCut && payload == c.payload {
		return
	}
	t := moment()
	for _, s := range f.sources {
		s.past = s.load(t, c.payload)
		s.isIdle = isCut
		s.flow.begin(t)
	}
	if isCut && !c.isCut && f.place != nil {
		c.cuts.join()
	}
	c.isCut, c.payload = isCut, payload
}

// begin has a flow start anew.
func (f *flow) begin(t time.Duration) { f.times.from, f.at, f.sum = t, 0, 0 }

// identify gives the function the GUID that mlx5 makes of a MAC address. An
// address of another form changes nothing.
func (f *function) identify() {
	b, err := net.ParseMAC(f.mac)
	if err != nil || len(b) != 6 {
		return
	}
	f.guid = 0
	for _, octet := range []byte{b[0], b[1], b[2], 0x03, 0x00, b[3], b[4], b[5]} {
		f.guid = f.guid<<8 | uint64(octet)
	}
}

// changeGround brings the cards to what the real netdevs are now.
func (m *machine) changeGround(t time.Duration) error {
	isNew, err := m.ground.read()
	switch {
	case errors.Is(err, rtnl.ErrInterrupted):
		return nil // links come and go faster than they can be listed: the next look will tell
	case err != nil || !isNew:
		return err
	}
	for _, c := range m.cards {
		f := c.functions[0]
		c.stand(m.ground, m.moment)
		c.state = c.at(t)
		if f.real == nil && f.netPlace != nil {
			f.removeNetdevFiles()
			f.netPlace = nil
		}
		if f.real != nil {
			f.netPlace, f.name = m.host, f.netdev
			f.addNetdevFiles()
		}
		f.writeGIDs(f.rdmaDir() + "/ports/1")
		f.writeState()
	}
	m.tellGround()
	return nil
}

// tellGround has the simulated kernel know what the real one knows of links,
// with the cards below them, and says what changed.
func (m *machine) tellGround() {
	links, addresses := slices.Clone(m.ground.links), slices.Clone(m.ground.addresses)
	settings, nics := map[int]ethtool.LinkSettings{}, map[int]*fakekernel.NIC{}
	for _, f := range m.functions() {
		if f.real == nil {
			continue
		}
		i := slices.IndexFunc(links, func(l rtnl.Link) bool { return l.Index == f.link })
		links[i] = f.netlink()
		settings[f.link], nics[f.link] = f.settings(), m.nic(f)
	}
	var before fakekernel.Facts
	m.host.kernel.Change(func(k *fakekernel.Facts) {
		before = *k
		k.Links, k.Addresses, k.Settings, k.NICs = links, addresses, settings, nics
		for i, f := range m.functions() {
			k.RDMA[i] = f.device()
		}
	})
	m.sayLinks(before.Links, links)
	m.sayAddresses(before.Addresses, addresses)
}

// sayLinks says which links are new, changed or gone.
func (m *machine) sayLinks(before, now []rtnl.Link) {
	for _, l := range now {
		if !slices.ContainsFunc(before, func(o rtnl.Link) bool { return reflect.DeepEqual(o, l) }) {
			m.host.kernel.SendLink(l, false)
		}
	}
	for _, l := range before {
		if !slices.ContainsFunc(now, func(o rtnl.Link) bool { return o.Index == l.Index }) {
			m.host.kernel.SendLink(l, true)
		}
	}
}

// sayAddresses says the same of addresses.
func (m *machine) sayAddresses(before, now []rtnl.Address) {
	for _, a := range now {
		if !slices.Contains(before, a) {
			m.host.kernel.SendAddress(a, false)
		}
	}
	for _, a := range before {
		if !slices.ContainsFunc(now, func(o rtnl.Address) bool { return o.LinkIndex == a.LinkIndex && o.Prefix == a.Prefix }) {
			m.host.kernel.SendAddress(a, true)
		}
	}
}
