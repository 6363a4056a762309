package ethtool

import (
	"errors"
	"io/fs"
	"math"
	"strconv"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// LinkSettings is what a netdev's link runs at and could run at.
type LinkSettings struct {
	SpeedMegabits    int    `json:"speedMegabits,omitempty"` // 0 while the link is down or where unknown
	Lanes            int    `json:"lanes,omitempty"`         // 0 where the driver does not say
	Duplex           string `json:"duplex,omitempty"`        // "full", "half"; empty where unknown
	Autoneg          bool   `json:"autoneg,omitempty"`
	MaxSpeedMegabits int    `json:"maxSpeedMegabits,omitempty"` // fastest supported link mode; 0 where the driver lists none
	Port             string `json:"port,omitempty"`             // "twisted-pair", "fibre", "direct-attach", …
	LinkDetected     *bool  `json:"linkDetected,omitempty"`
}

// A linkQuery is one of the commands that LinkSettings is put together from.
type linkQuery struct {
	command command
	visit   func(*LinkSettings, *netlink.AttributeDecoder)
}

func linkQueries() []linkQuery {
	return []linkQuery{
		{linkModesGet, (*LinkSettings).visitLinkModes},
		{linkInfoGet, (*LinkSettings).visitLinkInfo},
		{linkStateGet, (*LinkSettings).visitLinkState},
	}
}

// Settings returns the link settings of the netdev with an index, by three
// requests. What the driver does not answer stays zero and is no error. When
// a request fails, the error comes with what the others gave; a netdev that is
// gone is fs.ErrNotExist and has no settings.
func (c *Client) Settings(index int) (LinkSettings, error) {
	var s LinkSettings
	var errs []error
	for _, q := range linkQueries() {
		part, err := c.querySettings(q, index, s)
		switch {
		case err == nil:
			s = part
		case errors.Is(err, fs.ErrNotExist):
			return LinkSettings{}, err
		default:
			errs = append(errs, err)
		}
	}
	return s, errors.Join(errs...)
}

// SettingsAll returns the link settings of all netdevs by index, by three
// dumps. Netdevs that answer none of the questions are not in the map. When
// some netdevs fail, the error names them and comes with the settings of the
// others; those that vanish meanwhile are left out.
func (c *Client) SettingsAll() (map[int]LinkSettings, error) {
	all := make(map[int]LinkSettings)
	var errs []error
	for _, q := range linkQueries() {
		msgs, err := c.dump(q.command)
		switch {
		case err == nil:
			err = q.mergeDump(all, msgs)
		case errors.Is(err, ErrNotSupported):
			err = nil
		default:
			err = c.mergeEach(all, q)
		}
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// querySettings returns s with what one command adds to it.
func (c *Client) querySettings(q linkQuery, index int, s LinkSettings) (LinkSettings, error) {
	err := c.get(q.command, 0, index, func(ad *netlink.AttributeDecoder) { q.visit(&s, ad) })
	if errors.Is(err, ErrNotSupported) {
		err = nil
	}
	return s, err
}

// mergeDump adds what a dump says to the settings of each netdev.
func (q linkQuery) mergeDump(all map[int]LinkSettings, msgs []genetlink.Message) error {
	var errs []error
	for _, m := range msgs {
		index, ok := headerIndex(m.Data)
		if !ok {
			errs = append(errs, &Error{Command: q.command.String(), Err: errors.New("an answer that names no netdev")})
			continue
		}
		s, err := q.parse(m.Data, all[index])
		if err != nil {
			errs = append(errs, &Error{Command: q.command.String(), Netdev: ifindex(index), Err: err})
			continue
		}
		all[index] = s
	}
	return errors.Join(errs...)
}

// mergeEach does with a request for each netdev what a dump would have done:
// the kernel ends a dump at the first netdev that fails, such as one in the
// middle of a reset, and that netdev must not hide the others.
func (c *Client) mergeEach(all map[int]LinkSettings, q linkQuery) error {
	indexes, err := c.indexes()
	if err != nil {
		return err
	}
	var errs []error
	for _, index := range indexes {
		s, err := c.querySettings(q, index, all[index])
		switch {
		case err == nil:
			all[index] = s
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// parse returns s with what an answer adds to it.
func (q linkQuery) parse(b []byte, s LinkSettings) (LinkSettings, error) {
	err := decode(b, func(ad *netlink.AttributeDecoder) { q.visit(&s, ad) })
	return s, err
}

func (s *LinkSettings) visitLinkModes(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case unix.ETHTOOL_A_LINKMODES_AUTONEG:
		s.Autoneg = ad.Uint8() != 0
	case unix.ETHTOOL_A_LINKMODES_OURS:
		// The value is what is advertised, the mask what is supported.
		s.MaxSpeedMegabits = maxMegabits(decodeBitset(ad).mask)
	case unix.ETHTOOL_A_LINKMODES_SPEED:
		s.SpeedMegabits = megabits(ad.Uint32())
	case unix.ETHTOOL_A_LINKMODES_DUPLEX:
		s.Duplex = duplexName(ad.Uint8())
	case unix.ETHTOOL_A_LINKMODES_LANES:
		s.Lanes = int(ad.Uint32())
	}
}

func (s *LinkSettings) visitLinkInfo(ad *netlink.AttributeDecoder) {
	if ad.Type() == unix.ETHTOOL_A_LINKINFO_PORT {
		s.Port = portName(ad.Uint8())
	}
}

func (s *LinkSettings) visitLinkState(ad *netlink.AttributeDecoder) {
	if ad.Type() == unix.ETHTOOL_A_LINKSTATE_LINK {
		link := ad.Uint8() != 0
		s.LinkDetected = &link
	}
}

// megabits returns a speed of the kernel, which is in 0…INT_MAX, or all ones
// (SPEED_UNKNOWN).
func megabits(speed uint32) int {
	if speed > math.MaxInt32 {
		return 0
	}
	return int(speed)
}

// duplexName returns the word for a DUPLEX_… of include/uapi/linux/ethtool.h.
func duplexName(duplex uint8) string {
	switch duplex {
	case 0x00:
		return "half"
	case 0x01:
		return "full"
	case 0xff:
		return ""
	}
	return strconv.Itoa(int(duplex))
}

// portName returns the word for a PORT_… of include/uapi/linux/ethtool.h.
func portName(port uint8) string {
	switch port {
	case 0x00:
		return "twisted-pair"
	case 0x01:
		return "aui"
	case 0x02:
		return "mii"
	case 0x03:
		return "fibre"
	case 0x04:
		return "bnc"
	case 0x05:
		return "direct-attach"
	case 0xef:
		return "none"
	case 0xff:
		return "other"
	}
	return strconv.Itoa(int(port))
}
