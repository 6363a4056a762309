package rdmanl

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The tests in this file ask the running kernel. In the VM lab, which sets
// RAILHEAD_IN_VM and makes a Soft-RoCE device first, they must run.

// classInfiniband shows the devices of the initial network namespace.
const classInfiniband = "/sys/class/infiniband"

func inVM() bool { return os.Getenv("RAILHEAD_IN_VM") == "1" }

// skipUnsupported skips where the kernel cannot do it, but not in the VM.
func skipUnsupported(t *testing.T, err error) {
	t.Helper()
	switch {
	case errors.Is(err, ErrNotSupported) && !inVM():
		t.Skipf("%v. To run it here load ib_core; the VM lab has it.", err)
	case err != nil:
		t.Fatal(err)
	}
}

func TestLiveClient(t *testing.T) {
	t.Parallel()
	c, err := Dial(nil)
	skipUnsupported(t, err)
	defer c.Close()

	system, err := c.System()
	if err != nil || system.NetNSMode != "shared" && system.NetNSMode != "exclusive" {
		t.Errorf("System() = %+v, %v", system, err)
	}
	devices, err := c.DevicesWithPorts()
	if err != nil {
		t.Fatal(err)
	}
	if len(devices) == 0 && inVM() {
		t.Error("no devices; the VM lab makes one")
	}
	if _, err := c.Device(1 << 30); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a device that is not there: error %v, want fs.ErrNotExist", err)
	}
	for _, d := range devices {
		liveDevice(t, c, d)
	}
	if inVM() {
		names := make([]string, 0, len(devices))
		for _, d := range devices {
			names = append(names, d.Name)
		}
		slices.Sort(names)
		if diff := equal(entryNames(t, classInfiniband), names); diff != "" {
			t.Errorf("devices (-sysfs +netlink):\n%s", diff)
		}
	}
}

// liveDevice makes every request about a device and compares with sysfs, which
// shows the same where it shows the device.
func liveDevice(t *testing.T, c *Client, d Device) {
	t.Helper()
	again, err := c.Device(d.Index)
	d2 := d
	d2.Ports = nil
	if diff := equal(d2, again); diff != "" || err != nil {
		t.Errorf("Device(%d): %v (-dump +get):\n%s", d.Index, err, diff)
	}
	liveResources(t, c, d)
	dir := filepath.Join(classInfiniband, d.Name)
	if _, err := os.Stat(dir); err != nil {
		t.Logf("%s is not compared with sysfs: %v", d.Name, err)
		return
	}
	compare(t, d.Name+" node GUID", read(t, dir, "node_guid"), d.NodeGUID)
	compare(t, d.Name+" system image GUID", read(t, dir, "sys_image_guid"), d.SysImageGUID)
	_, nodeType, _ := strings.Cut(read(t, dir, "node_type"), ": ")
	compare(t, d.Name+" node type", strings.ToLower(nodeType), d.NodeType)
	for _, p := range d.Ports {
		livePort(t, c, p, filepath.Join(dir, "ports", strconv.Itoa(p.Number)))
	}
	liveUverbs(t, c, d)
}

func liveResources(t *testing.T, c *Client, d Device) {
	t.Helper()
	counts, err := c.Resources(d.Index)
	if err != nil || len(counts) == 0 {
		t.Errorf("%s: Resources() = %v, %v", d.Name, counts, err)
	}
	_, contextsErr := c.Contexts(d.Index)
	_, pdsErr := c.PDs(d.Index)
	_, mrsErr := c.MRs(d.Index)
	cqs, cqsErr := c.CQs(d.Index)
	_, cmidsErr := c.CMIDs(d.Index)
	qps, qpsErr := c.QPs(d.Index)
	_, srqsErr := c.SRQs(d.Index)
	if err := errors.Join(contextsErr, pdsErr, mrsErr, cqsErr, cmidsErr, qpsErr, srqsErr); err != nil {
		t.Errorf("%s: %v", d.Name, err)
	}
	for _, q := range qps {
		if q.State == "" || q.Type == "" || q.PID == 0 && q.KernelName == "" {
			t.Errorf("%s: QP with fields missing: %+v", d.Name, q)
		}
	}
	for _, q := range cqs {
		if q.Entries == 0 || q.PID == 0 && q.KernelName == "" {
			t.Errorf("%s: CQ with fields missing: %+v", d.Name, q)
		}
	}
}

func livePort(t *testing.T, c *Client, p Port, dir string) {
	t.Helper()
	name := p.DeviceName + " port " + strconv.Itoa(p.Number)
	_, state, _ := strings.Cut(read(t, dir, "state"), ": ")
	compare(t, name+" state", state, p.State)
	compare(t, name+" link layer", read(t, dir, "link_layer"), p.LinkLayer)
	_, phys, _ := strings.Cut(read(t, dir, "phys_state"), ": ")
	compare(t, name+" physical state", strings.ToLower(phys), strings.ToLower(strings.ReplaceAll(p.PhysState, "_", "")))
	if p.NetdevName != "" {
		compare(t, name+" netdev index", read(t, "/sys/class/net", p.NetdevName, "ifindex"), strconv.Itoa(p.NetdevIndex))
	}

	again, err := c.Port(p.DeviceIndex, p.Number)
	again.LinkLayer = p.LinkLayer
	if diff := equal(p, again); diff != "" || err != nil {
		t.Errorf("%s: %v (-dump +get):\n%s", name, err, diff)
	}
	if _, err := c.Port(p.DeviceIndex, 1000); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: a port that is not there: error %v, want fs.ErrNotExist", name, err)
	}
	if mode, err := c.CounterMode(p.DeviceIndex, p.Number); err != nil || mode.Mode == "" {
		t.Errorf("%s: CounterMode() = %v, %v", name, mode, err)
	}
	if counters, err := c.QPCounters(p.DeviceIndex, p.Number); err != nil {
		t.Errorf("%s: QPCounters() = %v, %v", name, counters, err)
	}
	liveStatistics(t, c, p, filepath.Join(dir, "hw_counters"))
}

func liveStatistics(t *testing.T, c *Client, p Port, dir string) {
	t.Helper()
	counters, err := c.Statistics(p.DeviceIndex, p.Number)
	if _, statErr := os.Stat(dir); statErr != nil {
		if !errors.Is(err, ErrNotSupported) {
			t.Errorf("%s: Statistics() of a driver without counters: error %v, want ErrNotSupported", p.DeviceName, err)
		}
		return
	}
	if err != nil {
		t.Error(err)
	}
	seen := map[string]bool{"lifespan": true} // an attribute of sysfs alone
	for _, counter := range counters {
		seen[counter.Name] = true
	}
	if diff := equal(entryNames(t, dir), slices.Sorted(maps.Keys(seen))); diff != "" {
		t.Errorf("%s: counters (-sysfs +netlink):\n%s", p.DeviceName, diff)
	}
	if statuses, err := c.CounterStatuses(p.DeviceIndex, p.Number); err != nil || len(statuses) < len(counters) {
		t.Errorf("%s: CounterStatuses() = %v, %v", p.DeviceName, statuses, err)
	}
}

func liveUverbs(t *testing.T, c *Client, d Device) {
	t.Helper()
	char, err := c.CharDevice("uverbs", d.Index, 0)
	if errors.Is(err, ErrNotSupported) && !inVM() {
		t.Logf("uverbs of %s is not compared with sysfs: %v", d.Name, err)
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	dir := filepath.Join("/sys/class/infiniband_verbs", char.Name)
	compare(t, char.Name+" number", read(t, dir, "dev"), strconv.Itoa(int(char.Major))+":"+strconv.Itoa(int(char.Minor)))
	compare(t, char.Name+" device", read(t, dir, "ibdev"), d.Name)
	compare(t, char.Name+" ABI", read(t, dir, "abi_version"), strconv.FormatUint(char.ABI, 10))
}

func TestLiveMonitor(t *testing.T) {
	t.Parallel()
	m, err := DialMonitor(nil)
	skipUnsupported(t, err)
	failed := make(chan error, 1)
	go func() {
		for {
			if _, err := m.Receive(); err != nil {
				failed <- err
				return
			}
		}
	}()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Receive after Close: error %v, want fs.ErrClosed", err)
	}
}

func compare(t *testing.T, what, sysfs, netlink string) {
	t.Helper()
	if sysfs != netlink {
		t.Errorf("%s: sysfs says %q, netlink %q", what, sysfs, netlink)
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(b))
}

func entryNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
