package sysfs

import (
	"errors"
	"os"
	"strconv"
	"strings"
)

// CharDevice is an RDMA character device, as sysfs ties it to its RDMA device:
// by the ibdev attribute, never by the number in its name.
type CharDevice struct {
	Name   string // uverbs0, umad3, issm3, rdma_cm
	Class  string // "uverbs", "umad", "issm" or "rdma_cm"
	IBDev  string // ibdev; empty for rdma_cm, which serves all devices
	Port   int    // port of umad and issm; 0 otherwise
	Major  uint32 // from dev
	Minor  uint32
	Exists bool // whether /dev/infiniband/NAME exists
}

// CharDevices returns the RDMA character devices: uverbs, issm, umad and
// rdma_cm, each in natural order of their names. Where a module is not loaded,
// its devices are missing from the list and nothing is an error.
func (fs FS) CharDevices() ([]CharDevice, error) {
	var all []CharDevice
	var errs []error
	for _, class := range []string{"class/infiniband_verbs", "class/infiniband_mad", "class/misc"} {
		found, err := fs.charDevices(class)
		all = append(all, found...)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

func (fs FS) charDevices(class string) ([]CharDevice, error) {
	found, err := fs.names(fs.Sys(class))
	if err != nil {
		return nil, err
	}
	var ours []string
	for _, name := range found {
		if charClass(name) != "" {
			ours = append(ours, name)
		}
	}
	return each(ours, func(name string) (CharDevice, error) { return fs.charDevice(class, name) })
}

func (fs FS) charDevice(class, name string) (CharDevice, error) {
	c := CharDevice{Name: name, Class: charClass(name)}
	d, err := fs.open(class, name)
	if err != nil {
		return c, err
	}
	defer d.close()
	number := value(d, "dev", parseDev, devNumber{})
	c.Major, c.Minor = number.major, number.minor
	c.IBDev = d.text("ibdev")
	c.Port = value(d, "port", parseInt, 0)
	c.Exists, err = exists(fs.Path("/dev/infiniband", name))
	return c, errors.Join(err, d.done())
}

// charClass returns the class of a character device by its name; empty for
// one that is not of RDMA.
func charClass(name string) string {
	if name == "rdma_cm" {
		return name
	}
	for _, class := range []string{"uverbs", "umad", "issm"} {
		number, ok := strings.CutPrefix(name, class)
		if _, isNumber := parseIndex(number); ok && isNumber {
			return class
		}
	}
	return ""
}

type devNumber struct{ major, minor uint32 }

// parseDev parses the number of a device, "231:192".
func parseDev(s string) (devNumber, error) {
	first, second, ok := strings.Cut(s, ":")
	major, errMajor := strconv.ParseUint(first, 10, 32)
	minor, errMinor := strconv.ParseUint(second, 10, 32)
	if !ok || errMajor != nil || errMinor != nil {
		return devNumber{}, wants(s, `a device number such as "231:192"`)
	}
	return devNumber{uint32(major), uint32(minor)}, nil
}

func exists(name string) (bool, error) {
	_, err := os.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
