package uevent

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// An Event is one change of a device that the kernel announces.
type Event struct {
	Action    string            // "add", "remove", "change", "move", "bind", "unbind", "online", "offline"
	DevPath   string            // below /sys: "/devices/pci0000:16/0000:16:01.0/net/eth0"
	Subsystem string            // "net", "infiniband", "pci", …; empty for a kobject that belongs to none
	Seq       uint64            // rises by one for each event of the kernel, in any namespace
	Vars      map[string]string // all variables, also those above: INTERFACE, IFINDEX, PCI_SLOT_NAME, NAME, DRIVER, …
}

// udevMagic begins the messages that udevd sends to its own listeners.
const udevMagic = "libudev\x00"

// parse takes one message of the kernel: "action@devpath" and then variables
// as NAME=value, each ended by a NUL (lib/kobject_uevent.c). It refuses
// messages of udevd and messages without action, device or sequence number.
// Variables that are not NAME=value are left out.
func parse(msg []byte) (Event, error) {
	if bytes.HasPrefix(msg, []byte(udevMagic)) {
		return Event{}, errors.New("uevent: message of udevd, want one of the kernel")
	}
	header, rest, _ := strings.Cut(string(msg), "\x00")
	action, path, ok := strings.Cut(header, "@")
	if !ok || action == "" || path == "" {
		return Event{}, fmt.Errorf("uevent: header %q, want action@devpath", header)
	}
	e := Event{Action: action, DevPath: path, Vars: parseVars(rest)}
	e.Subsystem = e.Vars["SUBSYSTEM"]
	seq, err := strconv.ParseUint(e.Vars["SEQNUM"], 10, 64)
	if err != nil {
		return Event{}, fmt.Errorf("uevent: %s: SEQNUM %q, want a number", header, e.Vars["SEQNUM"])
	}
	e.Seq = seq
	return e, nil
}

func parseVars(s string) map[string]string {
	vars := make(map[string]string, strings.Count(s, "\x00"))
	for v := range strings.SplitSeq(s, "\x00") {
		if name, value, ok := strings.Cut(v, "="); ok && name != "" {
			vars[name] = value
		}
	}
	return vars
}
