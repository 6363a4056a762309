package sysfs_test

import (
	"fmt"

	"railhead/internal/kernel/sysfs"
)

// What could not be read is told beside what could.
func Example() {
	host := sysfs.New("/host")
	devices, err := host.IBDevices()
	if err != nil {
		fmt.Println("incomplete:", err)
	}
	for _, d := range devices {
		for _, p := range d.Ports {
			fmt.Printf("%s port %d: %s at %g Gb/s\n", d.Name, p.Number, p.State, p.Rate.Gigabits)
		}
	}
}
