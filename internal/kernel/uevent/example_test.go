package uevent_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log"

	"railhead/internal/kernel/uevent"
)

// Devices that come and go, until the Listener is closed.
func ExampleListener() {
	listener, err := uevent.Listen(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = listener.Close() }()

	for {
		event, err := listener.Receive()
		switch {
		case errors.Is(err, fs.ErrClosed):
			return
		case errors.Is(err, uevent.ErrOverrun):
			fmt.Println("read everything again")
		case err != nil:
			log.Println(err)
		case event.Subsystem == "infiniband":
			fmt.Println(event.Action, event.Vars["NAME"])
		}
	}
}
