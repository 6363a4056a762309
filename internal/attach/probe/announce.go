package probe

import (
	"context"
	"errors"
	"fmt"
)

// Announce tells everybody on the targets' links which addresses they have: a
// gratuitous ARP request or an unsolicited neighbour advertisement for each,
// once. RFC 5227 2.3 asks for a second time, two seconds later. Interfaces with
// addresses other than Ethernet's are left out.
//
// It goes on after errors, which name the interface and the address. For
// privileges and netnsFD see [Prober.Run].
func (p *Prober) Announce(ctx context.Context, netnsFD int, targets []Target) error {
	w, err := openWire(netnsFD)
	if err != nil {
		return err
	}
	defer w.closeIn(&p.background)
	var errs []error
	for i := range targets {
		t := &targets[i]
		if len(t.MAC) != macSize {
			continue
		}
		for _, a := range t.Addresses {
			if ctx.Err() != nil {
				return errors.Join(append(errs, context.Cause(ctx))...)
			}
			if err := w.send(t.Index, announceFrame([macSize]byte(t.MAC), a.Addr)); err != nil {
				errs = append(errs, fmt.Errorf("%s: announce %v: %w", t.where(), a.Addr, err))
			}
		}
	}
	return errors.Join(errs...)
}
