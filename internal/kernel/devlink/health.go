package devlink

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Reporter names a health reporter, which watches a part of a device or of one
// of its ports.
type Reporter struct {
	Bus    string  `json:"bus"`            // "pci", "auxiliary"
	Device string  `json:"device"`         // "0000:17:00.0", "mlx5_core.sf.4"
	Port   *uint32 `json:"port,omitempty"` // index of the devlink port, such as that of a VF's representor; nil where it watches the device
	Name   string  `json:"name"`           // the driver's: "fw", "fw_fatal", "tx", "rx", "vnic"
}

func (r Reporter) String() string {
	handle := r.Bus + "/" + r.Device
	if r.Port != nil {
		handle += "/" + strconv.FormatUint(uint64(*r.Port), 10)
	}
	return handle + " " + r.Name
}

// Health is what a reporter has seen since its driver was bound.
type Health struct {
	Reporter
	State      string    `json:"state"`           // "healthy", "error"; the number in decimal where unknown
	Errors     uint64    `json:"errors"`          // how often it saw an error
	Recoveries uint64    `json:"recoveries"`      // how often it recovered from one
	Dumped     time.Time `json:"dumped,omitzero"` // when it last stored a dump of an error; zero where there is none
}

// HealthReporters returns the reporters of a device and of its ports, and what
// they have seen (DEVLINK_CMD_HEALTH_REPORTER_GET, Linux 5.1). It asks no
// firmware, but waits for whoever holds the device's lock, as its recovery does.
// Before Linux 6.6, which came to dump one device alone, it waits so for the
// other devices of the namespace too. It needs no privilege. A device that
// devlink does not know has no reporters. A reporter that cannot be decoded does
// not hide the others.
func (c *Client) HealthReporters(bus, device string) ([]Health, error) {
	object := bus + "/" + device
	msgs, err := c.execute(unix.DEVLINK_CMD_HEALTH_REPORTER_GET, netlink.Request|netlink.Dump, func(ae *netlink.AttributeEncoder) {
		ae.String(unix.DEVLINK_ATTR_BUS_NAME, bus)
		ae.String(unix.DEVLINK_ATTR_DEV_NAME, device)
	})
	if errors.Is(err, unix.ENODEV) {
		return nil, nil // older kernels dump the others then, and no error
	}
	if err != nil {
		return nil, &Error{Command: reporterGet, Object: object, Err: err}
	}
	var reporters []Health
	var errs []error
	for _, m := range msgs {
		h, err := decodeHealth(m.Data)
		switch {
		case err != nil:
			errs = append(errs, &Error{Command: reporterGet, Object: object, Err: err})
		case h.Bus == bus && h.Device == device:
			reporters = append(reporters, h)
		}
	}
	return reporters, errors.Join(errs...)
}

// Diagnose asks a reporter what its part of the device is like now, and
// returns the numbers of the answer by the driver's names for them, wherever in
// the answer they stand (DEVLINK_CMD_HEALTH_REPORTER_DIAGNOSE, Linux 5.1). A
// name that comes more than once, as in the list of queues of the reporters tx
// and rx, says nothing and is left out. The reporter vnic of mlx5 (Linux 6.4)
// answers with single numbers: "total_error_queues", "cq_overrun", ….
//
// It needs CAP_NET_ADMIN in the initial user namespace, and the driver asks its
// firmware. The error is fs.ErrNotExist where there is no such device or
// reporter, and [ErrNotSupported] where the reporter makes no diagnosis.
func (c *Client) Diagnose(r Reporter) (map[string]uint64, error) {
	msgs, err := c.execute(unix.DEVLINK_CMD_HEALTH_REPORTER_DIAGNOSE, netlink.Request, func(ae *netlink.AttributeEncoder) {
		ae.String(unix.DEVLINK_ATTR_BUS_NAME, r.Bus)
		ae.String(unix.DEVLINK_ATTR_DEV_NAME, r.Device)
		if r.Port != nil {
			ae.Uint32(unix.DEVLINK_ATTR_PORT_INDEX, *r.Port)
		}
		ae.String(unix.DEVLINK_ATTR_HEALTH_REPORTER_NAME, r.Name)
	})
	var d diagnosis
	for _, m := range msgs {
		err = errors.Join(err, d.decode(m.Data))
	}
	if err != nil {
		return nil, &Error{Command: reporterDiagnose, Object: r.String(), Err: err}
	}
	return d.numbers(), nil
}

// Names of commands, as errors give them.
const (
	reporterGet      = "HEALTH_REPORTER_GET"
	reporterDiagnose = "HEALTH_REPORTER_DIAGNOSE"
)

func (c *Client) execute(command uint8, flags netlink.HeaderFlags, attributes func(*netlink.AttributeEncoder)) ([]genetlink.Message, error) {
	ae := netlink.NewAttributeEncoder()
	if attributes != nil {
		attributes(ae)
	}
	data, err := ae.Encode()
	if err != nil {
		return nil, err
	}
	msgs, err := c.nl.Execute(genetlink.Message{
		Header: genetlink.Header{Command: command, Version: unix.DEVLINK_GENL_VERSION},
		Data:   data,
	}, c.family, flags)
	if err != nil && c.closed.Load() {
		return nil, fs.ErrClosed
	}
	return msgs, err
}

func decodeHealth(b []byte) (Health, error) {
	var h Health
	err := each(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case unix.DEVLINK_ATTR_BUS_NAME:
			h.Bus = ad.String()
		case unix.DEVLINK_ATTR_DEV_NAME:
			h.Device = ad.String()
		case unix.DEVLINK_ATTR_PORT_INDEX:
			h.Port = new(ad.Uint32())
		case unix.DEVLINK_ATTR_HEALTH_REPORTER:
			ad.Nested(func(ad *netlink.AttributeDecoder) error {
				for ad.Next() {
					h.decode(ad)
				}
				return nil
			})
		}
	})
	switch {
	case err != nil:
		return Health{}, err
	case h.Bus == "" || h.Device == "" || h.Name == "" || h.State == "":
		return Health{}, fmt.Errorf("reporter %q with the state %q, want BUS_NAME, DEV_NAME, HEALTH_REPORTER_NAME and HEALTH_REPORTER_STATE", h.Reporter, h.State)
	}
	return h, nil
}

// decode takes an attribute of what a reporter has seen.
func (h *Health) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case unix.DEVLINK_ATTR_HEALTH_REPORTER_NAME:
		h.Name = ad.String()
	case unix.DEVLINK_ATTR_HEALTH_REPORTER_STATE:
		h.State = stateName(ad.Uint8())
	case unix.DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT:
		h.Errors = ad.Uint64()
	case unix.DEVLINK_ATTR_HEALTH_REPORTER_RECOVER_COUNT:
		h.Recoveries = ad.Uint64()
	case unix.DEVLINK_ATTR_HEALTH_REPORTER_DUMP_TS_NS:
		h.Dumped = time.Unix(0, int64(ad.Uint64())).UTC()
	}
}

// stateName returns the word for a DEVLINK_HEALTH_REPORTER_STATE_….
func stateName(state uint8) string {
	switch state {
	case 0:
		return "healthy"
	case 1:
		return "error"
	}
	return strconv.Itoa(int(state))
}

// each has visit called for each attribute of b.
func each(b []byte, visit func(*netlink.AttributeDecoder)) error {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return err
	}
	for ad.Next() {
		visit(ad)
	}
	return ad.Err()
}
