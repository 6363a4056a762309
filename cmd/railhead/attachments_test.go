package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/attach/routing"
	"railhead/internal/golden"
	"railhead/internal/ipam/journal"
	"railhead/internal/kernel/netns"
)

// began is when the attachments of these tests began.
var began = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// trainer is a pod with eth0 of another's plugin and two rails.
func trainer(t *testing.T) record.Attachment {
	t.Helper()
	options, err := routing.Merge(routing.Sources{Status: v2beta1.CoordinatorStatus{
		Phase: v2beta1.PhaseSynced, OverlayPodCIDR: []string{"10.233.64.0/18"}, ServiceCIDR: []string{"10.233.0.0/18"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	const id = "9d3a1c6f0b2e4d5a9d3a1c6f0b2e4d5a"
	rail := func(name string, rail int, address, gateway string) routing.Interface {
		return routing.Interface{
			Name: name, Rail: rail, Coordinator: &options,
			Addresses: []netip.Prefix{netip.MustParsePrefix(address)}, Gateways: []netip.Addr{netip.MustParseAddr(gateway)},
		}
	}
	pod := routing.Pod{ContainerID: id, NodeAddresses: []netip.Addr{netip.MustParseAddr("172.16.0.21")}, Interfaces: []routing.Interface{
		{
			Name: "eth0", IsDefaultNetwork: true, Foreign: true,
			Addresses: []netip.Prefix{netip.MustParsePrefix("10.233.71.24/32")}, Gateways: []netip.Addr{netip.MustParseAddr("169.254.1.1")},
		},
		rail("net1", 0, "172.16.11.17/24", "172.16.11.254"), rail("net2", 1, "172.16.12.17/24", "172.16.12.254"),
	}}
	plan := &attach.Plan{Version: attach.Version, ContainerID: id, NetNS: "/var/run/netns/cni-1", ID: netns.ID{Dev: 4, Ino: 4026532890}, Notes: []string{"net2: MTU 9000 of the network is more than its parent's 4200"}}
	if plan.Routing, err = routing.Plan(pod); err != nil {
		t.Fatal(err)
	}
	for i, parent := range []string{"", "enp11s0f0np0", "enp12s0f0np0"} {
		p := attach.PlannedInterface{Name: pod.Interfaces[i].Name, Table: int(plan.Routing.Links[i].Table), Addresses: pod.Interfaces[i].Addresses, Gateways: pod.Interfaces[i].Gateways}
		if parent == "" {
			p.Before = &attach.Former{MAC: "02:00:00:00:00:09", MTU: 1450}
		} else {
			p.Kind, p.Parent, p.MAC, p.MTU = attach.Macvlan, parent, plan.Routing.Links[i].MAC.String(), 4200
		}
		plan.Interfaces = append(plan.Interfaces, p)
	}
	report := record.Report{At: began, Took: 41234 * time.Microsecond, Steps: []record.Step{
		{Name: "default network", Took: 38 * time.Millisecond}, {Name: "links", Took: 2345678 * time.Nanosecond}, {Name: "record", Took: 900 * time.Microsecond},
	}}
	report.Checks = []record.Check{
		{Interface: "net1", Kind: record.CheckGateway, Address: "172.16.11.254", MAC: "52:54:00:12:34:56", OK: true, Waited: 412 * time.Microsecond, Tries: 1},
		{Interface: "net1", Kind: record.CheckConflict, Address: "172.16.11.17", OK: true, Waited: 200 * time.Millisecond, Tries: 2},
		{Interface: "net2", Kind: record.CheckGateway, Address: "172.16.12.254", Waited: 900 * time.Millisecond, Tries: 3, Error: "did not answer within 900ms (3 requests)"},
	}
	return record.Attachment{
		ContainerID: id, PodUID: "6f0b", Namespace: "ai", Name: "trainer-0", NetNS: plan.NetNS, ID: plan.ID, At: began,
		State: record.Attached, Plan: plan, Report: report, Answer: json.RawMessage(`{}`),
		Networks: []record.Network{
			{Name: "k8s-pod-network", Interface: "eth0", From: "file /etc/cni/net.d/10-calico.conflist", Default: true, Delegated: []record.Delegate{
				{Type: "calico", IfName: "eth0", Config: json.RawMessage(`{}`)}, {Type: "portmap", IfName: "eth0", Config: json.RawMessage(`{}`), Chain: 1},
			}},
			{Name: "rail0", Interface: "net1", NAD: "ai/rail0"},
			{Name: "rail1", Interface: "net2", NAD: "ai/rail1"},
		},
	}
}

// recorded is a directory with the record of pods in every state.
func recorded(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	disk, err := journal.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	store, err := record.Open(disk, record.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range others(t) {
		sync, err := store.Put(a)
		if err != nil || sync() != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(store.Close(), disk.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// others are the trainer and what else may be in a record.
func others(t *testing.T) []record.Attachment {
	t.Helper()
	first := trainer(t)
	named := func(id, name string, after time.Duration, change func(*record.Attachment)) record.Attachment {
		a := trainer(t)
		a.ContainerID, a.Name, a.At, a.Report.At = id+a.ContainerID, name, began.Add(after), began.Add(after)
		change(&a)
		return a
	}
	return []record.Attachment{
		first,
		named("aaaa", "gone-0", time.Hour, func(a *record.Attachment) { a.NetNS = "/var/run/netns/gone" }),
		named("bbbb", "well-0", 30*time.Hour, func(*record.Attachment) {}),
		named("cccc", "begins-0", 47*time.Hour, func(a *record.Attachment) { a.State, a.Report = record.Attaching, record.Report{} }),
		named("dddd", "later-0", 47*time.Hour+time.Minute, func(a *record.Attachment) { a.Plan.Version = 99 }),
		{ContainerID: "eeee", Namespace: "ai", Name: "ends-0", At: began.Add(47*time.Hour + 59*time.Minute + 30*time.Second), State: record.Detaching},
	}
}

// attachments runs the verb two days later, with a kernel that differs from what
// was made of the trainer.
func attachments(t *testing.T, isRoot bool, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	kernel := func() (compareFunc, func(), error) {
		if !isRoot {
			return nil, nil, errors.New("that takes root, to look into pods")
		}
		return func(_ context.Context, a record.Attachment) (string, []string) {
			switch a.Name {
			case "gone-0":
				return stateGone, nil
			case "well-0":
				return stateOK, nil
			}
			return stateDiffers, []string{"interface net1: address 172.16.11.17/24: it is not there", "interface net2: MTU is 1500: want 4200"}
		}, func() {}, nil
	}
	root := &cobra.Command{Use: "railhead", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(attachmentsCommand(kernel, func() time.Time { return began.Add(48 * time.Hour) }))
	var out, err bytes.Buffer
	status = execute(root, append([]string{"attachments"}, args...), &out, &err)
	return out.String(), err.String(), status
}

func TestAttachments(t *testing.T) {
	t.Parallel()
	dir := recorded(t)
	for name, tt := range map[string]struct {
		isRoot bool
		args   []string
	}{
		"attachments.txt":         {true, nil},
		"attachments.wide.txt":    {true, []string{"-o", "wide"}},
		"attachments.no-root.txt": {false, nil},
		"attachments.pod.txt":     {true, []string{"ai/trainer-0"}},
		"attachments.two.txt":     {true, []string{"ends-0", "aaaa9d3a"}},
		"attachments.well.txt":    {true, []string{"well-0", "-o", "text"}},
		"attachments.absent.txt":  {true, []string{"ai/trainer-7"}},
		"attachments.json":        {true, []string{"trainer-0", "-o", "json"}},
		"attachments.yaml":        {true, []string{"ends-0", "begins-0", "-o", "yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, status := attachments(t, tt.isRoot, append(tt.args, "--dir", dir)...)
			got := stdout
			if filepath.Ext(name) == ".txt" {
				got += trailer(stderr, status)
			}
			golden.Equal(t, filepath.Join("testdata", "attachments", name), got)
		})
	}
}

// TestAttachmentsUnreadable says what to do, with an exit status that tells.
func TestAttachmentsUnreadable(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for _, dir := range []string{empty, filepath.Join(empty, "absent")} {
		stdout, stderr, status := attachments(t, true, "--dir", dir)
		if want := "railhead: there is no attachments.journal in " + dir + ": is the agent of this node running with --cni, and its --attachments-dir the same as --dir?\n"; status != exitFailed || stdout != "" || stderr != want {
			t.Errorf("exit status %d, standard output %q, standard error %q", status, stdout, stderr)
		}
	}
	if err := os.WriteFile(filepath.Join(empty, record.File), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{"": "nothing is attached\n", "-o json": "{\n  \"attachments\": []\n}\n"} {
		if stdout, stderr, status := attachments(t, true, append(strings.Fields(args), "--dir", empty)...); status != 0 || stdout != want || stderr != "" {
			t.Errorf("%q: exit status %d, standard output %q, standard error %q", args, status, stdout, stderr)
		}
	}
	dir := recorded(t)
	path := filepath.Join(dir, record.File)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[30] ^= 1 // of the trainer's
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := attachments(t, true, "--dir", dir)
	if status != exitFailed || !strings.Contains(stderr, "attachments.journal is damaged: some attachments may be missing here") ||
		strings.Contains(stdout, "trainer-0") || !strings.Contains(stdout, "well-0") {
		t.Errorf("exit status %d, standard output %q, standard error %q", status, stdout, stderr)
	}
}

// TestRunningKernel asks this one: a namespace that is not there is gone.
func TestRunningKernel(t *testing.T) {
	t.Parallel()
	compare, done, err := runningKernel()
	if os.Geteuid() != 0 {
		if err == nil || !strings.Contains(err.Error(), "takes root") {
			t.Errorf("got %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	a := trainer(t)
	a.Plan.NetNS = filepath.Join(t.TempDir(), "absent")
	if state, differences := compare(t.Context(), a); state != stateGone || differences != nil {
		t.Errorf("%q %v", state, differences)
	}
	own, err := netns.Stat("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	a.Plan.NetNS, a.Plan.ID = "/proc/self/ns/net", own
	if state, differences := compare(t.Context(), a); state != stateDiffers || len(differences) == 0 {
		t.Errorf("%q %v", state, differences)
	}
	a.Plan.Cookie = 1 << 63 // of one that ended: another has its number now
	if state, differences := compare(t.Context(), a); state != stateGone || differences != nil {
		t.Errorf("a namespace whose number was given again: %q %v", state, differences)
	}
	moved, ok := reachable(&attach.Plan{NetNS: "/absent", ID: own}, map[netns.ID]string{own: "/proc/self/ns/net"})
	if !ok || moved.NetNS != "/proc/self/ns/net" {
		t.Errorf("%t %+v", ok, moved)
	}
}

// TestLinesOf holds that no line loses its beginning.
func TestLinesOf(t *testing.T) {
	t.Parallel()
	one, two := errors.New("one"), fmt.Errorf("two: %w: %w", os.ErrExist, os.ErrInvalid)
	got := linesOf(errors.Join(one, errors.Join(two)))
	if diff := cmp.Diff([]string{"one", "two: file already exists: invalid argument"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": -time.Second, "59s": 59 * time.Second, "5m7s": 307 * time.Second, "3h0m": 3*time.Hour + 5*time.Second, "2d4h": 52*time.Hour + time.Minute,
	} {
		if got := age(began, began.Add(d)); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
