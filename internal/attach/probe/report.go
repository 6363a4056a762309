package probe

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Kind is what a Result or a Conflict is about.
type Kind string

// What a Result is about.
const (
	KindGateway  Kind = "gateway"  // is it there?
	KindConflict Kind = "conflict" // has somebody else the address?
)

// How another host showed that it has or wants an address.
const (
	KindClaim Kind = "claim" // it says that it has the address
	KindProbe Kind = "probe" // it asks whether it can have it
)

// Report is what was found out about all targets: gateways first, each in the
// order of the targets.
type Report struct{ Results []Result }

// Result is what was found out about one address.
type Result struct {
	Interface string
	Rail      int
	Kind      Kind // KindGateway or KindConflict
	Address   netip.Addr
	MAC       net.HardwareAddr // the gateway's, or that of the other host in a conflict
	OK        bool
	Waited    time.Duration // until it was known
	Tries     int           // requests that were sent
	Err       error         // nil if OK; names interface, rail, parent and address
}

// Err returns the errors of all results, one a line, nil if all are well.
func (r Report) Err() error {
	var errs []error
	for _, result := range r.Results {
		errs = append(errs, result.Err)
	}
	return errors.Join(errs...)
}

// Conflicts returns the addresses that others have or want, with their MAC
// addresses.
func (r Report) Conflicts() map[netip.Addr]string {
	found := map[netip.Addr]string{}
	for _, result := range r.Results {
		if result.Kind == KindConflict && len(result.MAC) > 0 {
			found[result.Address] = result.MAC.String()
		}
	}
	return found
}

// where names a target as errors do.
func (t *Target) where() string {
	if t.Parent == "" {
		return fmt.Sprintf("%s (rail %d)", t.Interface, t.Rail)
	}
	return fmt.Sprintf("%s (rail %d, %s)", t.Interface, t.Rail, t.Parent)
}

// waited is a time as errors give it.
func waited(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// requests counts as errors do.
func requests(n int) string {
	if n == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", n)
}
