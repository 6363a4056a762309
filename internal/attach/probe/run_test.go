package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// summary is what tests compare of a Report: all but times.
func summary(r Report) string {
	var b strings.Builder
	took := regexp.MustCompile(`(within|after) [0-9.]+m?s`)
	for _, c := range r.Results {
		fmt.Fprintf(&b, "%s %d %s %v ok=%t mac=%t", c.Interface, c.Rail, c.Kind, c.Address, c.OK, len(c.MAC) > 0)
		if c.Err != nil {
			fmt.Fprintf(&b, ": %s", took.ReplaceAllString(c.Err.Error(), "$1 T"))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func wantSummary(t *testing.T, r Report, want ...string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(want, "\n")+"\n", summary(r)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// patient is how often a gateway is asked that answers: on a busy machine, late.
const patient = 1000

// withGateway returns a target that is asked for a gateway.
func withGateway(t Target, gateways ...string) Target {
	t.Detect.Gateway = true
	for _, g := range gateways {
		t.Gateways = append(t.Gateways, netip.MustParseAddr(g))
	}
	return t
}

// doubtful returns a target whose addresses all are doubtful.
func doubtful(t Target) Target {
	for i := range t.Addresses {
		t.Addresses[i].Doubtful = true
	}
	return t
}

func TestRunNothing(t *testing.T) {
	t.Parallel()
	target := Target{
		Interface: "net1", Addresses: []Address{{Addr: netip.MustParseAddr("10.0.0.2")}},
		Gateways: []netip.Addr{netip.MustParseAddr("10.0.0.1")},
	}
	r, err := new(Prober).Run(t.Context(), -1, []Target{target}) // a namespace that is none is not even opened
	if err != nil || len(r.Results) != 0 || r.Err() != nil {
		t.Errorf("%+v, %v, want nothing", r, err)
	}
	target.Detect.Gateway = true
	if _, err := new(Prober).Run(t.Context(), -1, []Target{target}); err == nil {
		t.Error("no error without a namespace")
	}
}

// TestCarrierLost has an interface that loses its carrier while its address is
// probed for: silence says nothing then.
func TestCarrierLost(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		target := withGateway(doubtful(l.rail(1, "10.1.0.2/24")), "10.1.0.1")
		noCarrier := []rtnl.Event{{Kind: rtnl.Links, Link: &rtnl.Link{Index: target.Index, Up: true, OperState: "lowerlayerdown"}}}
		for _, lost := range []bool{true, false} {
			s := begun(t, l, target)
			s.changed(noCarrier)
			if !lost {
				s.changed(nil) // events were lost: what the kernel says now is what counts
			}
			later := s.start.Add(time.Hour)
			for range doubtfulProbes + 1 {
				s.suspects[0].due = later
				s.probeSuspects(later)
			}
			for range DefaultRetries + 1 {
				s.gateways[0].due = later
				s.askGateways(later)
			}
			var why string
			conflict := "net1 1 conflict 10.1.0.2 ok=true mac=false"
			if lost {
				why = ": the interface has no carrier"
				conflict = "net1 1 conflict 10.1.0.2 ok=false mac=false: net1 (rail 1, rail1): address 10.1.0.2 cannot be checked for conflicts" + why
			}
			wantSummary(t, s.report(),
				"net1 1 gateway 10.1.0.1 ok=false mac=false: net1 (rail 1, rail1): gateway 10.1.0.1 did not answer within T (3 requests)"+why, conflict)
		}
	})
}

// begun returns a session that nobody runs, with all checks due.
func begun(t *testing.T, l *lab, targets ...Target) *session {
	t.Helper()
	s := newSession(int(l.pod.Fd()), &l.prober.background, targets)
	s.patience = time.Minute
	t.Cleanup(s.close)
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	s.start = time.Now()
	s.begin()
	return s
}

// TestOneSubnet has two rails on one link with one subnet, whose kernel answers
// for either's address on both.
func TestOneSubnet(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		t1 := withGateway(doubtful(l.rail(1, "172.16.0.2/16")), "172.16.0.1")
		t2 := withGateway(doubtful(l.macvlan(2, "rail1", "172.16.0.3/16")), "172.16.0.1")
		l.host(1, "172.16.0.1/16")
		t1.Detect.Retries, t2.Detect.Retries = patient, patient
		rail3 := l.rail(3, "172.16.0.4/16") // its link leads elsewhere
		t3 := withGateway(rail3, "172.16.0.1")
		t3.Detect.Retries, t3.Detect.Timeout = 1, 50*time.Millisecond
		l.host(3, "172.16.0.4/16")
		wantSummary(t, l.run(t1, t2, t3, claimed(rail3)),
			"net1 1 gateway 172.16.0.1 ok=true mac=true",
			"net2 2 gateway 172.16.0.1 ok=true mac=true",
			"net3 3 gateway 172.16.0.1 ok=false mac=false: net3 (rail 3, rail3): gateway 172.16.0.1 did not answer within T (1 request)",
			"net1 1 conflict 172.16.0.2 ok=true mac=false",
			"net2 2 conflict 172.16.0.3 ok=true mac=false",
			fmt.Sprintf("net3 3 conflict 172.16.0.4 ok=false mac=true: net3 (rail 3, rail3): address 172.16.0.4 is in use by %v", l.farLink(3).HardwareAddr),
		)
	})
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		target := withGateway(l.rail(1, "10.1.0.2/24"), "10.1.0.1")
		target.Detect.Conflict, target.Detect.Timeout = true, time.Hour
		ctx, cancel := context.WithCancelCause(t.Context())
		l.answer(1, func(frame []byte) []byte {
			if isRequestFor(frame, target.Gateways[0]) {
				cancel(fs.ErrClosed)
			}
			return nil
		})
		r, err := l.prober.Run(ctx, int(l.pod.Fd()), []Target{target})
		if err != nil || len(r.Results) != 2 || !errors.Is(r.Err(), fs.ErrClosed) {
			t.Fatalf("%+v, %v, want two results with %v", r, err, fs.ErrClosed)
		}
		want := "net1 (rail 1, rail1): check of gateway 10.1.0.1: given up after "
		if got := r.Results[0].Err.Error(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "(1 request): "+fs.ErrClosed.Error()) {
			t.Errorf("error %q, want %q…", got, want)
		}
	})
}
