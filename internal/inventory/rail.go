package inventory

import "fmt"

// assignRails numbers the rails, and gives each VF and SF the rail of its PF
// and each member of a bond the rail of its bond. It returns a line for every
// name that is no device or one that has a rail.
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
	shareBondRails(devices)
	return problems
}

// railsByID returns the rail of each PF that is one.
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
		rails[d.ID] = rail
	}
	return rails, problems
}

// railsByPCI numbers the PFs that have an RDMA device of their own.
func railsByPCI(devices []Device) map[string]int {
	rails := map[string]int{}
	for _, d := range devices {
		if d.Kind == PF && d.RDMA != nil {
			rails[d.ID] = len(rails)
		}
	}
	return rails
}

func shareBondRails(devices []Device) {
	rails := map[*Bond]*int{}
	for _, d := range devices {
		if d.Bond != nil && d.Rail != nil {
			rails[d.Bond] = d.Rail
		}
	}
	for i := range devices {
		if d := &devices[i]; d.Bond != nil && d.Rail == nil {
			d.Rail = rails[d.Bond]
		}
	}
}
