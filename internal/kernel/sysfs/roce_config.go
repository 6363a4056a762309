package sysfs

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
)

// RoCEConfig is how RoCE of a port is set up, as far as that can be read. What
// the kernel or driver does not offer is nil or empty; most of it is offered by
// the vendor's own driver packages only.
type RoCEConfig struct {
	TrafficClass *int   // traffic class that all connections get, DEV/tc/PORT/traffic_class; nil where not set
	Trust        string // what a packet's priority goes by, NETDEV/qos/trust: "pcp", "dscp"
	NotifyECN    *uint8 // bit N: marked packets of priority N are answered by CNPs, NETDEV/ecn/roce_np/enable/N
	ReactECN     *uint8 // bit N: CNPs slow priority N down, NETDEV/ecn/roce_rp/enable/N
	DefaultMode  string // GID type of rdma_cm connections: "RoCE v2", "IB/RoCE v1"
	DefaultTOS   *int   // IP type of service of rdma_cm connections; nil where not set
}

// RoCEConfig returns the configuration of a port and of its netdev, which may be
// empty for none. It creates nothing: the defaults of rdma_cm are in configfs,
// /sys/kernel/config/rdma_cm/DEV/ports/PORT, only since somebody made a
// directory for the device there.
func (fs FS) RoCEConfig(device string, port int, netdev string) (RoCEConfig, error) {
	var c RoCEConfig
	number := strconv.Itoa(port)
	err := errors.Join(
		fs.within(fs.Sys(classInfiniband), device, func(d *dir) {
			c.TrafficClass = value(d, "tc/"+number+"/traffic_class", parseTrafficClass, nil)
		}),
		fs.within(fs.Path("sys/kernel/config/rdma_cm"), device, func(d *dir) {
			c.DefaultMode = d.text("ports/" + number + "/default_roce_mode")
			c.DefaultTOS = value(d, "ports/"+number+"/default_roce_tos", parseTOS, nil)
		}),
	)
	if netdev == "" {
		return c, err
	}
	return c, errors.Join(err, fs.within(fs.Sys(classNet), netdev, func(d *dir) {
		c.Trust = d.text("qos/trust")
		c.NotifyECN = enabledPriorities(d, "ecn/roce_np/enable")
		c.ReactECN = enabledPriorities(d, "ecn/roce_rp/enable")
	}))
}

// within reads from a directory that may be absent.
func (fs FS) within(parent, name string, read func(*dir)) error {
	if err := checkName(name); err != nil {
		return err
	}
	d, err := fs.openDir(filepath.Join(parent, name))
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.close()
	read(d)
	return errors.Join(d.errs...)
}

// enabledPriorities reads a directory with a file for each of the 8 priorities.
func enabledPriorities(d *dir, name string) *uint8 {
	sub := d.sub(name)
	if sub == nil {
		return nil
	}
	defer sub.close()
	var bits uint8
	for p := range 8 {
		if on := value(sub, strconv.Itoa(p), parseCarrier, nil); on != nil && *on {
			bits |= 1 << p
		}
	}
	return &bits
}

// parseTrafficClass finds "Global tclass=106" among the lines of the classes of
// single connections. Without such a line nothing is set.
func parseTrafficClass(s string) (*int, error) {
	for line := range strings.Lines(s) {
		number, ok := strings.CutPrefix(strings.TrimSpace(line), "Global tclass=")
		if !ok {
			continue
		}
		return parseTOS(number)
	}
	return nil, nil
}

// parseTOS parses a number of 8 bits.
func parseTOS(s string) (*int, error) {
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return nil, wants(s, "a number from 0 to 255")
	}
	return new(int(n)), nil
}
