package record

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/attach"
	"railhead/internal/attach/routing"
	"railhead/internal/golden"
)

// eightRails is the plan of a pod with eth0 of another's plugin and eight rails
// with addresses of both families, and what was done.
func eightRails(tb testing.TB) (*attach.Plan, []Step) {
	tb.Helper()
	options, err := routing.Merge(routing.Sources{
		Cluster: v2beta1.CoordinatorSpec{HijackCIDR: []string{"169.254.0.0/16"}},
		Status: v2beta1.CoordinatorStatus{
			Phase:          v2beta1.PhaseSynced,
			OverlayPodCIDR: []string{"10.233.64.0/18", "fd85:ee78:d8a6:8607::1:0/112"},
			ServiceCIDR:    []string{"10.233.0.0/18", "fd85:ee78:d8a6:8607::1000/116"},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	pod := routing.Pod{
		ContainerID:   "9d3a1c6f0b2e",
		NodeAddresses: []netip.Addr{netip.MustParseAddr("172.16.0.21"), netip.MustParseAddr("fd00:0:0:1::21")},
		Interfaces: []routing.Interface{{
			Name: "eth0", IsDefaultNetwork: true, Foreign: true, Coordinator: &options,
			Addresses: []netip.Prefix{netip.MustParsePrefix("10.233.71.24/32"), netip.MustParsePrefix("fd85:ee78:d8a6:8607::1:24/128")},
			Gateways:  []netip.Addr{netip.MustParseAddr("169.254.1.1"), netip.MustParseAddr("fe80::ecee:eeff:feee:eeee")},
		}},
	}
	plan := &attach.Plan{Version: attach.Version, ContainerID: pod.ContainerID}
	steps := []Step{
		{Name: "links", Took: 2345678 * time.Nanosecond},
		{Name: "addresses", Took: 800 * time.Microsecond},
		{Name: "routes and rules", Took: 1200 * time.Microsecond},
		{Name: "settings", Took: 300 * time.Microsecond},
	}
	for rail := range 8 {
		n := 10 + rail
		i := routing.Interface{
			Name: fmt.Sprint("net", rail+1), Rail: rail, Coordinator: &options, Masters: []string{fmt.Sprintf("enp%ds0f0np0", n)},
			Addresses: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("172.16.%d.17/24", n)), netip.MustParsePrefix(fmt.Sprintf("fd00:172:16:%d::17/64", n))},
			Gateways:  []netip.Addr{netip.MustParseAddr(fmt.Sprintf("172.16.%d.254", n)), netip.MustParseAddr(fmt.Sprintf("fd00:172:16:%d::fffe", n))},
		}
		pod.Interfaces = append(pod.Interfaces, i)
	}
	if plan.Routing, err = routing.Plan(pod); err != nil {
		tb.Fatal(err)
	}
	for at, i := range pod.Interfaces {
		p := attach.PlannedInterface{Name: i.Name, Rail: i.Rail, Table: int(plan.Routing.Links[at].Table), Addresses: i.Addresses, Gateways: i.Gateways}
		if !i.Foreign {
			p.Kind, p.Parent, p.MTU = attach.Macvlan, i.Masters[0], 4200
			p.MAC = net.HardwareAddr{0x02, byte(i.Rail), 172, 16, byte(10 + i.Rail), 17}.String()
		}
		plan.Interfaces = append(plan.Interfaces, p)
	}
	return plan, steps
}

// checked is the report of eight rails with all that is asked on the wire.
func checked(tb testing.TB) Report {
	tb.Helper()
	plan, steps := eightRails(tb)
	r := describe(plan)
	r.Steps = steps
	r.At, r.Took = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), 12345*time.Microsecond
	for _, i := range r.Interfaces[1:] {
		for at, gateway := range i.Gateways {
			address, _, _ := strings.Cut(i.Addresses[at], "/")
			r.Checks = append(r.Checks,
				Check{Interface: i.Name, Kind: CheckGateway, Address: gateway, MAC: "52:54:00:12:34:56", OK: true, Waited: 412 * time.Microsecond, Tries: 1},
				Check{Interface: i.Name, Kind: CheckConflict, Address: address, OK: true, Waited: 200 * time.Millisecond, Tries: 2})
		}
	}
	return r
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	text, err := json.MarshalIndent(checked(t), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/eight-rails.json", string(text)+"\n")
	if diff := differ(Report{}, describe(nil)); diff != "" {
		t.Error(diff)
	}
}

// TestWhole adds what the plan says to a report of steps and checks alone.
func TestWhole(t *testing.T) {
	t.Parallel()
	plan, steps := eightRails(t)
	plan.Notes = []string{"both", "the plan's"}
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	a := Attachment{Plan: plan, At: at, Report: Report{Steps: steps, Notes: []string{"its own", "both"}}}
	want := describe(plan)
	want.At, want.Steps, want.Notes = at, steps, []string{"its own", "both", "the plan's"}
	if diff := differ(want, a.Whole()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if a.Report = checked(t); differ(append(a.Report.Notes, plan.Notes...), a.Whole().Notes) != "" || a.Whole().Interfaces[1].MAC == "" {
		t.Errorf("%+v", a.Whole())
	}
}

// TestAnnotation is short whatever a pod has, and reads back.
func TestAnnotation(t *testing.T) {
	t.Parallel()
	whole := checked(t)
	one := whole // of one family
	one.Checks, one.Routes, one.Rules = nil, nil, nil
	for _, c := range whole.Checks {
		if !strings.Contains(c.Address, "::") {
			one.Checks = append(one.Checks, c)
		}
	}
	for _, text := range whole.Routes {
		if !strings.Contains(text, "::") {
			one.Routes = append(one.Routes, text)
		}
	}
	for _, text := range whole.Rules {
		if !strings.Contains(text, "::") {
			one.Rules = append(one.Rules, text)
		}
	}
	many := whole
	for len(many.Interfaces) < 40 {
		many.Interfaces = append(many.Interfaces, whole.Interfaces...)
	}
	many.Notes = []string{strings.Repeat("x", AnnotationLimit)}
	many.Checks = append(many.Checks, Check{Interface: "net9", Kind: CheckGateway, Error: "did not answer"})
	for name, tt := range map[string]struct {
		r     Report
		left  string
		whole bool
	}{
		"one family":  {one, "", true},
		"both":        {whole, "addresses that nobody else has are left out here: railhead attachments on the node has them", false},
		"too many":    {many, "addresses that nobody else has, routes and rules, steps, checks without a finding, other notes, interfaces are left out here: railhead attachments on the node has them", false},
		"nothing yet": {Report{}, "", true},
	} {
		text, err := tt.r.AnnotationText()
		if err != nil || len(text) > AnnotationLimit {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
		t.Logf("%s: %d bytes", name, len(text))
		read, err := ParseAnnotation(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if notes := strings.Join(read.Notes, "\n"); notes != tt.left {
			t.Errorf("%s: notes %q", name, notes)
		}
		if diff := differ(rounded(tt.r), read); tt.whole && diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	many.Checks = []Check{{Error: strings.Repeat("x", AnnotationLimit)}}
	if _, err := many.AnnotationText(); err == nil || !strings.Contains(err.Error(), "its checks alone have more than 8192 bytes") {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{"", "[]", `{"took":"x"}`, `{"steps":[{"took":5}]}`, `{"checks":[7]}`} {
		if _, err := ParseAnnotation(text); err == nil || !strings.Contains(err.Error(), "annotation railhead.io/attachment is no report of an attachment") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if r, err := ParseAnnotation(`{"version":7,"took":"1s","new":{}}`); err != nil || r.Took != time.Second {
		t.Errorf("of a later release: %+v %v", r, err)
	}
}

// rounded is a report with its times to a microsecond.
func rounded(r Report) Report {
	r.Took = r.Took.Round(time.Microsecond)
	steps := append([]Step(nil), r.Steps...)
	for i := range steps {
		steps[i].Took = steps[i].Took.Round(time.Microsecond)
	}
	r.Steps = steps
	return r
}

func TestTableNames(t *testing.T) {
	t.Parallel()
	for want, tables := range map[string][]int{
		"main": {254}, "100": {100}, "100-107": {103, 100, 101, 102, 104, 105, 106, 107, 100}, "main,99-101,500": {500, 254, 99, 100, 101},
		"main,252-253": {254, 253, 252},
	} {
		if got := tableNames(tables); got != want {
			t.Errorf("%v: %q, want %q", tables, got, want)
		}
	}
}
