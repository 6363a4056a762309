package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"railhead/internal/attach"
)

// defaultBond is the name of a bond that has none.
const defaultBond = "sp_bond0"

// ifacerConfig is what makes the master of another plugin.
type ifacerConfig struct {
	Interfaces []string `json:"interfaces"`
	VLANID     int      `json:"vlanID"`
	Bond       *struct {
		Name    string `json:"name"`
		Mode    int    `json:"mode"`
		Options string `json:"options"`
	} `json:"bond"`
}

// Ifacer is the netdev that it makes: a bond of several netdevs, or the VLAN
// device on it or on the one. Without either it is that one.
func Ifacer(config []byte) (*attach.Parent, error) {
	errKnown := known(config, "interfaces", "vlanID", "bond")
	c, err := decode[ifacerConfig](config)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(errKnown, c.check()); err != nil {
		return nil, err
	}
	p := &attach.Parent{Members: c.Interfaces, VLANID: c.VLANID}
	p.Name = c.Interfaces[0]
	if len(c.Interfaces) > 1 { // with one, a bond has no effect
		options, err := bondOptions(c.Bond.Options)
		if err != nil {
			return nil, err
		}
		p.Bond = &attach.Bond{Name: c.bondName(), Mode: strconv.Itoa(c.Bond.Mode), Options: options}
		p.Name = p.Bond.Name
	}
	if c.VLANID != 0 {
		p.Name += "." + strconv.Itoa(c.VLANID)
	}
	if p.Bond == nil && p.VLANID == 0 { // there is nothing to make
		p.Members = nil
	}
	if checkNetdev("", p.Name) != nil { // both parts are fine
		return nil, badField("vlanID", c.VLANID, fmt.Sprintf("a shorter name below it: the VLAN device would be %s, and names of netdevs have 15 bytes at most", p.Name))
	}
	return p, nil
}

func (c ifacerConfig) bondName() string {
	if c.Bond == nil || c.Bond.Name == "" {
		return defaultBond
	}
	return c.Bond.Name
}

func (c ifacerConfig) check() error {
	const mostVLAN, mostMode = 4094, 6
	var errs []error
	for i, name := range c.Interfaces {
		errs = append(errs, checkNetdev(fmt.Sprintf("interfaces[%d]", i), name))
		if slices.Contains(c.Interfaces[:i], name) {
			errs = append(errs, badField(fmt.Sprintf("interfaces[%d]", i), name, "each netdev once"))
		}
	}
	switch {
	case len(c.Interfaces) == 0:
		errs = append(errs, errors.New(`field interfaces: is missing: want one netdev of the node or more, such as ["ens6f0np0"]`))
	case len(c.Interfaces) > 1 && c.Bond == nil:
		errs = append(errs, fmt.Errorf(`field bond: is missing: %d interfaces want one, such as {"name": "bond0", "mode": 1}`, len(c.Interfaces)))
	case len(c.Interfaces) > 1:
		errs = append(errs, checkNetdev("bond.name", c.bondName()))
		if slices.Contains(c.Interfaces, c.bondName()) {
			errs = append(errs, badField("bond.name", c.bondName(), "a name that none of the interfaces has"))
		}
		if c.Bond.Mode < 0 || c.Bond.Mode > mostMode {
			errs = append(errs, badField("bond.mode", c.Bond.Mode, "0 (balance-rr), 1 (active-backup), 2 (balance-xor), 3 (broadcast), 4 (802.3ad), 5 (balance-tlb) or 6 (balance-alb)"))
		}
	}
	if c.VLANID < 0 || c.VLANID > mostVLAN {
		errs = append(errs, badField("vlanID", c.VLANID, fmt.Sprintf("0 for none, or 1 to %d", mostVLAN)))
	}
	return errors.Join(errs...)
}

// bondOptions reads "key=value;key=value", by the kernel's names. Whether the
// kernel knows them is for it to say.
func bondOptions(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	options := map[string]string{}
	for option := range strings.SplitSeq(text, ";") {
		key, value, ok := strings.Cut(option, "=")
		_, again := options[key]
		switch {
		case !ok || key == "" || value == "" || strings.ContainsAny(option, " \t\r\n"):
			return nil, badField("bond.options", text, `"key=value;key=value" without spaces, such as "miimon=100;lacp_rate=1"`)
		case key == "mode":
			return nil, badField("bond.options", text, "the mode as bond.mode")
		case again:
			return nil, badField("bond.options", text, key+" once")
		}
		options[key] = value
	}
	return options, nil
}
