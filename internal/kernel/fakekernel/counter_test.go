package fakekernel_test

import (
	"errors"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
)

// expectErr reports an error that is not the one that is wanted.
func expectErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// expectSets compares the counter sets of port 1 of device 0, without values.
func expectSets(t *testing.T, c *rdmanl.Client, want ...rdmanl.QPCounter) {
	t.Helper()
	got, err := c.QPCounters(0, 1)
	for i := range got {
		got[i].Counters = nil
	}
	check(t, "counter sets", want, got, err)
}

func TestBind(t *testing.T) {
	t.Parallel()
	c := rdmaKernel().RDMA()
	closeAtEnd(t, c)
	id, err := c.BindQP(0, 1, 20)
	check(t, "first counter", 1, id, err)
	mode, err := c.CounterMode(0, 1)
	check(t, "mode", rdmanl.CounterMode{Mode: "manual"}, mode, err)
	if err := c.BindQPToCounter(0, 1, 21, id); err != nil {
		t.Error(err)
	}
	second, err := c.BindQP(0, 1, 22)
	check(t, "second counter", 2, second, err)
	expectSets(t, c, rdmanl.QPCounter{ID: 1, Port: 1, Mode: "manual", QPNs: []uint32{20, 21}}, rdmanl.QPCounter{ID: 2, Port: 1, Mode: "manual", QPNs: []uint32{22}})

	_, err = c.BindQP(0, 1, 20)
	expectErr(t, "QP that is bound", err, unix.EINVAL)
	_, err = c.BindQP(0, 1, 999)
	expectErr(t, "no such QP", err, fs.ErrNotExist)
	_, err = c.BindQP(4, 1, 20)
	expectErr(t, "port that does not count", err, rdmanl.ErrNotSupported)
	expectErr(t, "no such counter", c.BindQPToCounter(0, 1, 23, 9), fs.ErrNotExist)
	expectErr(t, "QP of the kernel with one of a process", c.BindQPToCounter(0, 1, 1, id), unix.EINVAL)
	expectErr(t, "mode while QPs are bound", c.SetCounterMode(0, 1, rdmanl.CounterMode{Mode: "auto", ByPID: true}), unix.EBUSY)
	expectErr(t, "none while it is not auto", c.SetCounterMode(0, 1, rdmanl.CounterMode{Mode: "none"}), unix.EINVAL)
	expectErr(t, "QP of another counter", c.UnbindQP(0, 1, 22, 1), unix.EINVAL)
	expectErr(t, "no such QP to unbind", c.UnbindQP(0, 1, 999, 1), fs.ErrNotExist)

	for _, qpn := range []uint32{20, 21} {
		if err := c.UnbindQP(0, 1, qpn, 1); err != nil {
			t.Error(err)
		}
	}
	expectSets(t, c, rdmanl.QPCounter{ID: 2, Port: 1, Mode: "manual", QPNs: []uint32{22}})
	if err := c.UnbindQP(0, 1, 22, 2); err != nil {
		t.Error(err)
	}
	expectSets(t, c)
	mode, err = c.CounterMode(0, 1)
	check(t, "mode after the last", rdmanl.CounterMode{Mode: "none"}, mode, err)
}

func TestCounterMode(t *testing.T) {
	t.Parallel()
	k := rdmaKernel()
	c := k.RDMA()
	closeAtEnd(t, c)
	mode, err := c.CounterMode(0, 1)
	check(t, "mode at first", rdmanl.CounterMode{Mode: "none"}, mode, err)
	want := rdmanl.CounterMode{Mode: "auto", AutoMask: 3, ByType: true, ByPID: true, Optional: new(true)}
	if err := c.SetCounterMode(0, 1, want); err != nil {
		t.Error(err)
	}
	mode, err = c.CounterMode(0, 1)
	check(t, "mode", want, mode, err)
	expectSets(t, c) // of QPs that are there already
	k.Look(func(f fakekernel.Facts) { check(t, "mode of the facts", want, f.HCAs[0].Ports[1].Mode, nil) })

	process := rdmanl.Owner{PID: 7}
	k.ChangeHCA(0, func(h *fakekernel.HCA) {
		h.AddQP(rdmanl.QP{Number: 500, Port: 1, Type: "RC", State: "RTS", Owner: process})
		h.AddQP(rdmanl.QP{Number: 501, Port: 1, Type: "UD", State: "RTS", Owner: process})
		h.AddQP(rdmanl.QP{Number: 502, Port: 1, Type: "RC", State: "RTS", Owner: process})
		h.AddQP(rdmanl.QP{Number: 503, Port: 1, Type: "RC", State: "RTS", Owner: rdmanl.Owner{KernelName: "nvme"}})
	})
	rc := rdmanl.QPCounter{ID: 1, Port: 1, Mode: "auto", QPType: "RC", QPNs: []uint32{500, 502}, Owner: process}
	ud := rdmanl.QPCounter{ID: 2, Port: 1, Mode: "auto", QPType: "UD", QPNs: []uint32{501}, Owner: process}
	expectSets(t, c, rc, ud)
	_, err = c.BindQP(0, 1, 20)
	expectErr(t, "bind in auto mode", err, unix.EINVAL)
	expectErr(t, "unbind in auto mode", c.UnbindQP(0, 1, 500, 1), unix.EINVAL)
	expectErr(t, "other mode while QPs are bound", c.SetCounterMode(0, 1, rdmanl.CounterMode{Mode: "auto", ByPID: true}), unix.EBUSY)
	expectErr(t, "mask that is newer", c.SetCounterMode(0, 1, rdmanl.CounterMode{Mode: "auto", AutoMask: 8}), rdmanl.ErrNotSupported)

	k.ChangeHCA(0, func(h *fakekernel.HCA) { h.RemoveQP(501) })
	expectSets(t, c, rc)
	if err := c.SetCounterMode(0, 1, rdmanl.CounterMode{Mode: "none"}); err != nil {
		t.Error(err)
	}
	mode, err = c.CounterMode(0, 1)
	check(t, "mode while QPs stay bound", rdmanl.CounterMode{Mode: "manual"}, mode, err)
	k.ChangeHCA(0, func(h *fakekernel.HCA) { h.RemoveQP(500); h.RemoveQP(502) })
	mode, err = c.CounterMode(0, 1)
	check(t, "mode after the last", rdmanl.CounterMode{Mode: "none"}, mode, err)
	for _, mode := range []rdmanl.CounterMode{{Mode: "auto", ByPID: true}, {Mode: "none"}} {
		if err := c.SetCounterMode(0, 1, mode); err != nil {
			t.Errorf("mode %q while nothing is bound: %v", mode.Mode, err)
		}
	}
	mode, err = c.CounterMode(0, 1)
	check(t, "mode that was ended", rdmanl.CounterMode{Mode: "none"}, mode, err)
}

func TestRefuseChange(t *testing.T) {
	t.Parallel()
	k := rdmaKernel()
	c := k.RDMA()
	closeAtEnd(t, c)
	k.Refuse(fakekernel.SetCounters, unix.EPERM)
	expectErr(t, "mode", c.SetCounterMode(0, 1, rdmanl.CounterMode{Mode: "auto", ByPID: true}), fs.ErrPermission)
	mode, err := c.CounterMode(0, 1)
	check(t, "mode after a refusal", rdmanl.CounterMode{Mode: "none"}, mode, err)
}

func TestOptionalCounters(t *testing.T) {
	t.Parallel()
	c := rdmaKernel().RDMA()
	closeAtEnd(t, c)
	names := func() (names []string) {
		counters, err := c.Statistics(0, 1)
		if err != nil {
			t.Error(err)
		}
		for _, c := range counters {
			names = append(names, c.Name)
		}
		return names
	}
	if err := c.SetOptionalCounters(0, 1, []uint32{1}); err != nil {
		t.Error(err)
	}
	check(t, "counters", []string{"rx_write_requests", "cc_rx_ce_pkts", "out_of_buffer"}, names(), nil)
	for _, index := range []uint32{0, 4} {
		expectErr(t, "counter that cannot be switched", c.SetOptionalCounters(0, 1, []uint32{2, index}), unix.EINVAL)
	}
	check(t, "counters after an error", []string{"rx_write_requests", "cc_rx_ce_pkts", "out_of_buffer"}, names(), nil)
	if err := c.SetOptionalCounters(0, 1, nil); err != nil {
		t.Error(err)
	}
	check(t, "counters that are always on", []string{"rx_write_requests", "out_of_buffer"}, names(), nil)
}
