package inventory

import (
	"cmp"
	"fmt"
)

// assignRails numbers the rails, and gives each VF and SF the rail of its PF
// and each function that another one's RDMA device carries the rail of that, or
// the other way round. It returns a line for every name that is no device or one
// that has a rail.
func assignRails(devices []Device, names []string) []string {
	rails, problems := railsByID(devices, names)
	for i := range devices {
		d := &devices[i]
		rail, ok := rails[d.ID]
		if !ok {
			rail, ok = rails[d.Parent]
		}
		if ok {
			d.Rail = &rail
		}
	}
	shareRails(devices)
	return problems
}

// railsByID returns the rail of each card that is one.
func railsByID(devices []Device, names []string) (map[string]int, []string) {
	if len(names) == 0 {
		return railsByPCI(devices), nil
	}
	s := Snapshot{Devices: devices}
	rails := map[string]int{}
	var problems []string
	for rail, name := range names {
		d, ok := s.Device(name)
		if !ok {
			problems = append(problems, fmt.Sprintf("rail %d: there is no netdev, RDMA device or PCI address %q", rail, name))
			continue
		}
		if other, ok := rails[d.ID]; ok {
			problems = append(problems, fmt.Sprintf("rail %d: %q is on %s, which is rail %d already", rail, name, d.ID, other))
			continue
		}
		if taken, ok := rails[d.ID]; ok {
			problems = append(problems, fmt.Sprintf("rail %d: %q is on %s, which is rail %d already", rail, name, d.ID, taken))
			continue
		}
		rails[d.ID] = rail
	}
	return rails, problems
}

// railsByPCI numbers the cards of the most frequent board: a node has many
// rails of one kind, and beside them a card or two for storage or management.
// Where no board is the most frequent, all cards are rails.
func railsByPCI(devices []Device) map[string]int {
	boards := map[string]int{}
	for i := range devices {
		if d := &devices[i]; d.IsRoot() && d.RDMA != nil {
			boards[boardOf(d)]++
		}
	}
	most, ties := 0, 0
	for _, count := range boards {
		switch {
		case count > most:
			most, ties = count, 1
		case count == most:
			ties++
		}
	}
	rails := map[string]int{}
	for i := range devices {
		if d := &devices[i]; d.IsRoot() && d.RDMA != nil && (ties > 1 || boards[boardOf(d)] == most) {
			rails[d.ID] = len(rails)
		}
	}
	return rails
}

func boardOf(d *Device) string {
	return d.PCI.Vendor + ":" + d.PCI.Device + " " + d.RDMA.BoardID
}

// shareRails gives a function and the RDMA device that carries it the same rail,
// whichever of them has one.
func shareRails(devices []Device) {
	carriers := map[string]*Device{} // RDMA device → its function
	for i := range devices {
		if d := &devices[i]; d.RDMA != nil {
			carriers[d.RDMA.Name] = d
		}
	}
	for i := range devices {
		d := &devices[i]
		if carrier := carriers[d.CarriedBy]; carrier != nil {
			carrier.Rail = cmp.Or(carrier.Rail, d.Rail)
			d.Rail = cmp.Or(d.Rail, carrier.Rail)
		}
	}
}
