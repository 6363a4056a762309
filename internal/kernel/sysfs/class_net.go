package sysfs

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Netdev is a directory of /sys/class/net.
type Netdev struct {
	Name         string   // enp23s0f0np0
	Index        int      // ifindex
	DevicePath   string   // real path of the device link, below sysfs' root; empty for virtual netdevs
	DevPort      int      // dev_port: which port of a multi-port function this is, from 0
	PhysPortName string   // phys_port_name: "p0", "pf0vf3"; empty where not offered
	PhysSwitchID string   // phys_switch_id; empty where not offered
	Type         int      // type: ARPHRD_…; 1 Ethernet, 32 InfiniBand
	Address      string   // address
	OperState    string   // operstate: "up", "down", "unknown"
	Carrier      *bool    // carrier; nil while the netdev is down
	MTU          int      // mtu
	SpeedMegabit int      // speed; 0 where unknown
	Master       string   // name of the master (bond, bridge); empty for none
	Lower        []string // names of the netdevs below it (bond members, macvlan parent), sorted
	BondMode     string   // bonding/mode without its number: "802.3ad"; empty when it is no bond
}

const classNet = "class/net"

// NetdevNames returns the names of the network devices in natural order: those
// of the network namespace in which this sysfs was mounted.
func (fs FS) NetdevNames() ([]string, error) {
	return fs.names(fs.Sys(classNet))
}

// Netdevs returns the network devices in natural order of their names.
func (fs FS) Netdevs() ([]Netdev, error) {
	found, err := fs.NetdevNames()
	if err != nil {
		return nil, err
	}
	return each(found, fs.Netdev)
}

// Netdev returns a network device. Reading its speed and physical port asks
// the driver, which may take milliseconds to answer.
func (fs FS) Netdev(name string) (Netdev, error) {
	d, err := fs.open(classNet, name)
	if err != nil {
		return Netdev{Name: name}, err
	}
	defer d.close()
	dev := Netdev{
		Name:         name,
		Index:        value(d, "ifindex", parseInt, 0),
		DevicePath:   d.link("device"),
		DevPort:      value(d, "dev_port", parseInt, 0),
		PhysPortName: d.text("phys_port_name"),
		PhysSwitchID: d.text("phys_switch_id"),
		Type:         value(d, "type", parseInt, 0),
		Address:      d.text("address"),
		OperState:    d.text("operstate"),
		Carrier:      value(d, "carrier", parseCarrier, nil),
		MTU:          value(d, "mtu", parseInt, 0),
		SpeedMegabit: value(d, "speed", parseSpeed, 0),
		Master:       d.linkName("master"),
		Lower:        readLower(d),
		BondMode:     beforeNumber(d.text("bonding/mode")),
	}
	return dev, d.done()
}

// readLower returns the names of the links lower_NAME.
func readLower(d *dir) []string {
	var lower []string
	for _, name := range d.names() {
		if below, ok := strings.CutPrefix(name, "lower_"); ok {
			lower = append(lower, below)
		}
	}
	slices.SortFunc(lower, compareNatural)
	return lower
}

func parseCarrier(s string) (*bool, error) {
	up := s == "1"
	if !up && s != "0" {
		return nil, wants(s, "0 or 1")
	}
	return &up, nil
}

// parseSpeed parses a speed in Mb/s. Unknown is -1, which kernels before 5.3
// show as a number of 32 bits.
func parseSpeed(s string) (int, error) {
	speed, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, wants(s, "a speed in Mb/s")
	}
	if speed < 0 || speed >= math.MaxInt32 {
		return 0, nil
	}
	return int(speed), nil
}

// beforeNumber returns the name in "802.3ad 4", as bonding shows an enumerated
// value. What has another form it returns whole.
func beforeNumber(s string) string {
	name, number, _ := strings.Cut(s, " ")
	if _, ok := parseIndex(number); !ok {
		return s
	}
	return name
}
