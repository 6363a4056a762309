package ethtool_test

import (
	"errors"
	"fmt"
	"log"

	"railhead/internal/kernel/ethtool"
)

// The driver's statistics of a netdev, as ethtool -S shows them.
func ExampleStatistics() {
	client, err := ethtool.Dial(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()

	statistics := ethtool.NewStatistics("eth0", nil)
	names, values, err := statistics.Read(client) // and again for the next sample
	if errors.Is(err, ethtool.ErrNotSupported) {
		fmt.Println("the driver counts nothing")
		return
	}
	if err != nil {
		log.Println(err)
		return
	}
	for i, name := range names {
		fmt.Printf("%s: %d\n", name, values[i])
	}
}
