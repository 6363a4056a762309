package rtnl

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"golang.org/x/sys/unix"
)

// Link is a network interface as RTM_NEWLINK describes it, without its VFs.
// How many VFs there are the kernel says only with all that it knows of each;
// see [Client.VFs], or sriov_numvfs of the PCI function.
type Link struct {
	Index        int      `json:"index"`
	Name         string   `json:"name"`
	AltNames     []string `json:"altNames,omitempty"`
	Alias        string   `json:"alias,omitempty"`
	Kind         string   `json:"kind,omitempty"`        // IFLA_INFO_KIND: "macvlan", "bond"; empty for hardware
	Type         int      `json:"type"`                  // ARPHRD_…: 1 Ethernet, 32 InfiniBand
	Address      string   `json:"address,omitempty"`     // aa:bb:…, 6 bytes on Ethernet, 20 on IPoIB
	PermAddress  string   `json:"permAddress,omitempty"` // the address the hardware came with
	Up           bool     `json:"up"`                    // IFF_UP: the administrator wants it up
	Running      bool     `json:"running"`               // IFF_LOWER_UP: it has a carrier
	OperState    string   `json:"operState,omitempty"`   // "up", "down", "dormant", …
	MTU          int      `json:"mtu"`
	MinMTU       int      `json:"minMTU,omitempty"`
	MaxMTU       int      `json:"maxMTU,omitempty"` // 0 where the driver sets no bound
	TxQueueLen   int      `json:"txQueueLen,omitempty"`
	Group        int      `json:"group,omitempty"`        // IFLA_GROUP: links that can be deleted at once
	ParentIndex  int      `json:"parentIndex,omitempty"`  // IFLA_LINK: the netdev below (macvlan, vlan), the peer of a veth; its own index counts as none
	ParentNetNS  *int     `json:"parentNetNS,omitempty"`  // IFLA_LINK_NETNSID, when the parent, with its index, is in another namespace; -1 for one without an id here
	MasterIndex  int      `json:"masterIndex,omitempty"`  // bond or bridge it belongs to
	ParentBus    string   `json:"parentBus,omitempty"`    // IFLA_PARENT_DEV_BUS_NAME: "pci", "auxiliary"; empty before kernel 5.14
	ParentDev    string   `json:"parentDev,omitempty"`    // IFLA_PARENT_DEV_NAME: "0000:17:00.0"
	PhysPortName string   `json:"physPortName,omitempty"` // "p0", "pf0vf3"
	PhysSwitchID string   `json:"physSwitchID,omitempty"` // hex
	BondMode     string   `json:"bondMode,omitempty"`     // "802.3ad", …, for Kind "bond"
	VLANID       int      `json:"vlanID,omitempty"`       // for Kind "vlan"
	Mode         string   `json:"mode,omitempty"`         // macvlan and ipvlan mode: "bridge", "l2"
}

// What an RTM_GETLINK asks for or not, RTEXT_FILTER_VF and
// RTEXT_FILTER_SKIP_STATS of include/uapi/linux/rtnetlink.h.
const (
	extVF        = 1 << 0
	extSkipStats = 1 << 3
)

// The longest names that a link and an alternative name can have, without NUL.
const (
	maxName    = unix.IFNAMSIZ - 1
	maxAltName = 127
)

// Links returns the links of the namespace, as the kernel orders them.
//
// It asks for no statistics and never for VFs: with either, the kernel would
// ask the firmware of every NIC, one command per VF and property.
func (c *Client) Links() ([]Link, error) {
	msgs, err := c.dump("links", unix.RTM_GETLINK, linkRequest(0, extSkipStats))
	if err != nil {
		return nil, err
	}
	return decode(msgs, unix.RTM_NEWLINK, unix.AF_UNSPEC, parseLink)
}

// Link returns the link with an index. Without one, the error is
// fs.ErrNotExist.
func (c *Client) Link(index int) (Link, error) {
	return c.link(fmt.Sprintf("link %d", index), linkRequest(index, extSkipStats))
}

// LinkByName returns the link with a name or, since kernel 5.5, an alternative
// name. Without one, the error is fs.ErrNotExist.
func (c *Client) LinkByName(name string) (Link, error) {
	request, err := nameRequest(name)
	if err != nil {
		return Link{}, err
	}
	return c.link(linkTitle(name), request)
}

func (c *Client) link(object string, request []byte) (Link, error) {
	m, err := c.get(object, unix.RTM_GETLINK, request)
	if err != nil {
		return Link{}, err
	}
	return parseLink(m.Data)
}

// linkRequest returns the body of an RTM_GETLINK.
func linkRequest(index int, extMask uint32) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	return appendUint32(b, unix.IFLA_EXT_MASK, extMask)
}

// parseLink decodes the body of an RTM_NEWLINK or RTM_DELLINK.
func parseLink(b []byte) (Link, error) {
	if err := header(b, unix.SizeofIfInfomsg); err != nil {
		return Link{}, fmt.Errorf("link: %w", err)
	}
	flags := binary.NativeEndian.Uint32(b[8:])
	l := Link{
		Type:    int(binary.NativeEndian.Uint16(b[2:])),
		Index:   int(int32(binary.NativeEndian.Uint32(b[4:]))),
		Up:      flags&unix.IFF_UP != 0,
		Running: flags&unix.IFF_LOWER_UP != 0,
	}
	a := attributes{rest: b[unix.SizeofIfInfomsg:]}
	for a.next() {
		l.attribute(&a)
	}
	if a.err != nil {
		return Link{}, fmt.Errorf("link %d: %w", l.Index, a.err)
	}
	if l.ParentIndex == l.Index && l.ParentNetNS == nil {
		l.ParentIndex = 0
	}
	return l, nil
}

func (l *Link) attribute(a *attributes) {
	switch a.typ {
	case unix.IFLA_IFNAME:
		l.Name = a.string()
	case unix.IFLA_PROP_LIST:
		a.fail(l.properties(a.data))
	case unix.IFLA_IFALIAS:
		l.Alias = a.string()
	case unix.IFLA_LINKINFO:
		a.fail(l.info(a.data))
	case unix.IFLA_ADDRESS:
		l.Address = a.link()
	case unix.IFLA_PERM_ADDRESS:
		l.PermAddress = a.link()
	case unix.IFLA_OPERSTATE:
		l.OperState = name(operStates, uint32(a.uint8()))
	case unix.IFLA_MTU:
		l.MTU = a.int()
	case unix.IFLA_MIN_MTU:
		l.MinMTU = a.int()
	case unix.IFLA_MAX_MTU:
		l.MaxMTU = a.int()
	case unix.IFLA_TXQLEN:
		l.TxQueueLen = a.int()
	case unix.IFLA_GROUP:
		l.Group = int(a.uint32())
	default:
		l.relation(a)
	}
}

// relation decodes what ties a link to others and to its device.
func (l *Link) relation(a *attributes) {
	switch a.typ {
	case unix.IFLA_LINK:
		l.ParentIndex = a.int()
	case unix.IFLA_LINK_NETNSID:
		id := a.int()
		l.ParentNetNS = &id
	case unix.IFLA_MASTER:
		l.MasterIndex = a.int()
	case unix.IFLA_PARENT_DEV_BUS_NAME:
		l.ParentBus = a.string()
	case unix.IFLA_PARENT_DEV_NAME:
		l.ParentDev = a.string()
	case unix.IFLA_PHYS_PORT_NAME:
		l.PhysPortName = a.string()
	case unix.IFLA_PHYS_SWITCH_ID:
		l.PhysSwitchID = hex.EncodeToString(a.data)
	}
}

// properties decodes IFLA_PROP_LIST.
func (l *Link) properties(b []byte) error {
	a := attributes{rest: b}
	for a.next() {
		if a.typ == unix.IFLA_ALT_IFNAME {
			l.AltNames = append(l.AltNames, a.string())
		}
	}
	return a.err
}

// info decodes IFLA_LINKINFO.
func (l *Link) info(b []byte) error {
	var data []byte // means something only once the kind is known
	a := attributes{rest: b}
	for a.next() {
		switch a.typ {
		case unix.IFLA_INFO_KIND:
			l.Kind = a.string()
		case unix.IFLA_INFO_DATA:
			data = a.data
		}
	}
	if a.err != nil {
		return a.err
	}
	return l.infoData(data)
}

// infoData decodes the IFLA_INFO_DATA of the kinds that have a field in Link.
func (l *Link) infoData(b []byte) error {
	a := attributes{rest: b}
	switch l.Kind {
	case "bond", "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap":
	default:
		return nil
	}
	for a.next() {
		if a.typ != 1 { // IFLA_BOND_MODE, IFLA_VLAN_ID, IFLA_MACVLAN_MODE and IFLA_IPVLAN_MODE all are
			continue
		}
		switch l.Kind {
		case "bond":
			l.BondMode = name(bondModes, uint32(a.uint8()))
		case "vlan":
			l.VLANID = int(a.uint16())
		case "macvlan", "macvtap":
			l.Mode = name(macvlanModes, a.uint32())
		case "ipvlan", "ipvtap":
			l.Mode = name(ipvlanModes, uint32(a.uint16()))
		}
	}
	return a.err
}
