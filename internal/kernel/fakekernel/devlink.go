package fakekernel

import (
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/devlink"
)

// devlinkQuestion understands a command of devlink.
func devlinkQuestion(command uint8, attributes []byte) question {
	q := question{kind: healthReporter, body: attributes}
	switch command {
	case unix.DEVLINK_CMD_HEALTH_REPORTER_GET:
		q.request, q.answer = GetHealthReporters, (*Kernel).healthReporters
	case unix.DEVLINK_CMD_HEALTH_REPORTER_DIAGNOSE:
		q.request, q.answer, q.locate = DiagnoseHealth, (*Kernel).diagnosis, (*Kernel).reporterOf
	default:
		return unsupported()
	}
	return q
}

// healthReporters says what reporters have seen: those of one device, as Linux
// 6.6 and later do, or all.
func (k *Kernel) healthReporters(q question) answer {
	a := answer{typ: devlinkFamily}
	isOfOne := text(q.body, unix.DEVLINK_ATTR_DEV_NAME) != ""
	for i, r := range k.facts.Devlink {
		if !isOfOne || q.isOfDevice(r) {
			a.addLive(i, func() []byte { return encodeHealth(r) })
		}
	}
	if isOfOne && a.bodies == nil {
		return answer{errno: unix.ENODEV}
	}
	return a
}

func encodeHealth(r Reporter) []byte {
	health := devlink.Health{State: "healthy"}
	if r.Health != nil {
		health = r.Health()
	}
	return encodeGeneric(unix.DEVLINK_CMD_HEALTH_REPORTER_GET, func(ae *netlink.AttributeEncoder) {
		putReporter(ae, r.Reporter)
		nest(ae, unix.DEVLINK_ATTR_HEALTH_REPORTER, func(ae *netlink.AttributeEncoder) { putHealth(ae, r.Name, health) })
	})
}

// putReporter encodes what a reporter watches.
func putReporter(ae *netlink.AttributeEncoder, r devlink.Reporter) {
	ae.String(unix.DEVLINK_ATTR_BUS_NAME, r.Bus)
	ae.String(unix.DEVLINK_ATTR_DEV_NAME, r.Device)
	putOptional32(ae, unix.DEVLINK_ATTR_PORT_INDEX, r.Port)
}

func putHealth(ae *netlink.AttributeEncoder, name string, h devlink.Health) {
	ae.String(unix.DEVLINK_ATTR_HEALTH_REPORTER_NAME, name)
	ae.Uint8(unix.DEVLINK_ATTR_HEALTH_REPORTER_STATE, uint8(numberOf(healthStates, h.State)))
	ae.Uint64(unix.DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT, h.Errors)
	ae.Uint64(unix.DEVLINK_ATTR_HEALTH_REPORTER_RECOVER_COUNT, h.Recoveries)
	if !h.Dumped.IsZero() {
		ae.Uint64(unix.DEVLINK_ATTR_HEALTH_REPORTER_DUMP_TS_NS, uint64(h.Dumped.UnixNano()))
	}
}

// diagnosis says what a reporter finds in its part of the device. The kernel
// says ENODEV where there is no such device, and EOPNOTSUPP where it has no such
// reporter, or the reporter no diagnosis.
func (k *Kernel) diagnosis(q question) answer {
	if !q.about && !slices.ContainsFunc(k.facts.Devlink, q.isOfDevice) {
		return answer{errno: unix.ENODEV}
	}
	if !q.about || k.facts.Devlink[q.object].Names == nil {
		return answer{errno: unix.EOPNOTSUPP}
	}
	r := k.facts.Devlink[q.object]
	a := answer{typ: devlinkFamily, multi: true}
	t := &template{names: len(r.Names)}
	header := encodeGeneric(unix.DEVLINK_CMD_HEALTH_REPORTER_DIAGNOSE, func(*netlink.AttributeEncoder) {})
	t.encode(func(ae *netlink.AttributeEncoder) {
		nest(ae, unix.DEVLINK_ATTR_FMSG, func(ae *netlink.AttributeEncoder) { putPairs(ae, r.Names) })
	}, unix.DEVLINK_ATTR_FMSG, unix.DEVLINK_ATTR_FMSG_OBJ_VALUE_DATA)
	a.addLive(q.object, func() []byte { return slices.Concat(header, t.fill(k, r.Values)) })
	return a
}

// putPairs encodes an object of names with numbers, which come later.
func putPairs(ae *netlink.AttributeEncoder, names []string) {
	const typeU64 = 4 // DEVLINK_VAR_ATTR_TYPE_U64
	ae.Flag(unix.DEVLINK_ATTR_FMSG_OBJ_NEST_START, true)
	for _, name := range names {
		ae.Flag(unix.DEVLINK_ATTR_FMSG_PAIR_NEST_START, true)
		ae.String(unix.DEVLINK_ATTR_FMSG_OBJ_NAME, name)
		ae.Uint8(unix.DEVLINK_ATTR_FMSG_OBJ_VALUE_TYPE, typeU64)
		ae.Uint64(unix.DEVLINK_ATTR_FMSG_OBJ_VALUE_DATA, 0)
		ae.Flag(unix.DEVLINK_ATTR_FMSG_NEST_END, true)
	}
	ae.Flag(unix.DEVLINK_ATTR_FMSG_NEST_END, true)
}

// reporterOf returns the place of the reporter that a question is about.
func (k *Kernel) reporterOf(q question) (place int, ok bool) {
	port, hasPort := number(q.body, unix.DEVLINK_ATTR_PORT_INDEX)
	place = slices.IndexFunc(k.facts.Devlink, func(r Reporter) bool {
		samePort := hasPort == (r.Port != nil) && (!hasPort || *r.Port == port)
		return samePort && q.isOfDevice(r) && r.Name == text(q.body, unix.DEVLINK_ATTR_HEALTH_REPORTER_NAME)
	})
	return max(place, 0), place >= 0
}

// isOfDevice reports whether a reporter is of the device that a question is
// about.
func (q question) isOfDevice(r Reporter) bool {
	return r.Bus == text(q.body, unix.DEVLINK_ATTR_BUS_NAME) && r.Device == text(q.body, unix.DEVLINK_ATTR_DEV_NAME)
}
