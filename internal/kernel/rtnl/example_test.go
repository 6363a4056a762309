package rtnl_test

import (
	"errors"
	"fmt"
	"io/fs"

	"railhead/internal/kernel/rtnl"
)

func ExampleClient_LinkByName() {
	c, err := rtnl.Dial(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()

	_, err = c.LinkByName("rail-of-nobody")
	fmt.Println(err)
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output:
	// link "rail-of-nobody": RTM_GETLINK: no such device
	// true
}

// Who keeps a picture of a namespace subscribes, reads the lists, applies the
// events, and reads the lists again when events were lost.
func ExampleSubscribe() {
	s, err := rtnl.Subscribe(nil, rtnl.Links, rtnl.Addresses)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()

	readAll := func() {} // Client.Links, Client.Addresses
	apply := func(rtnl.Event) {}

	readAll()
	for {
		events, err := s.Receive()
		switch {
		case errors.Is(err, fs.ErrClosed):
			return
		case errors.Is(err, rtnl.ErrOverrun):
			readAll()
		case err != nil:
			fmt.Println(err) // of what could not be decoded
		}
		for _, e := range events {
			apply(e)
		}
	}
}
