package rdmanl_test

import (
	"errors"
	"fmt"
	"log"

	"railhead/internal/kernel/rdmanl"
)

// Who holds how much memory of each device, and what its ports count.
func Example() {
	client, err := rdmanl.Dial(nil)
	if errors.Is(err, rdmanl.ErrNotSupported) {
		fmt.Println("no RDMA on this kernel")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	devices, err := client.DevicesWithPorts()
	if err != nil {
		log.Print(err) // the devices that could be read are there all the same
	}
	for _, device := range devices {
		regions, _ := client.MRs(device.Index)
		for _, mr := range regions {
			fmt.Println(device.Name, "pid", mr.PID, "bytes", mr.Length)
		}
		for _, port := range device.Ports {
			counters, _ := client.Statistics(device.Index, port.Number)
			for _, counter := range counters {
				fmt.Println(device.Name, port.Number, port.State, counter.Name, counter.Value)
			}
		}
	}
}
