package probe

import (
	"errors"
	"fmt"
	"time"
)

// How an address that is doubtful is probed. RFC 5227 1.1 has up to 7 seconds
// for it, for links where a host's port may still be closed and hosts slow to
// answer; 2.2.1 allows less on links that are known. On the Ethernet of a data
// centre, where the link was up before the pod, hosts answer within a
// millisecond.
const (
	doubtfulProbes   = 3
	doubtfulInterval = 50 * time.Millisecond
	doubtfulWait     = 150 * time.Millisecond // for all of them
)

// suspect is a check whether somebody else has an address.
type suspect struct {
	check

	frame    []byte // of a probe
	probes   int    // how many
	interval time.Duration
	rest     time.Duration // after the last
	sent     int           // or tried
	failure  error         // of the last that could not be sent
}

// patiently sets how often an address is probed, so that it takes wait in all,
// and longer only when this program is kept from running: whoever is asked has
// his time.
func (p *suspect) patiently(probes int, interval, wait time.Duration) {
	p.probes = min(probes, 1+int((wait-1)/interval))
	p.interval = interval
	p.rest = wait - time.Duration(p.probes-1)*interval
}

// addSuspects adds the addresses of a target that are to be checked.
func (s *session) addSuspects(t *Target) {
	if n := len(t.MAC); n != 0 && n != macSize {
		return
	}
	for _, a := range t.Addresses {
		if !a.Doubtful && !t.Detect.Conflict {
			continue
		}
		p := &suspect{check: newCheck(t, KindConflict)}
		p.result.Address = a.Addr
		if a.Doubtful {
			p.patiently(doubtfulProbes, doubtfulInterval, doubtfulWait)
		} else {
			p.patiently(p.detect.Retries, p.detect.Interval, p.detect.Timeout)
		}
		switch {
		case len(t.MAC) == 0:
			s.decide(&p.check, fmt.Errorf("%s: address %v cannot be checked for conflicts: the interface's MAC address is not given", t.where(), a.Addr))
		case !isHost(a.Addr):
			s.decide(&p.check, fmt.Errorf("%s: address %v cannot be checked for conflicts: want one of a host", t.where(), a.Addr))
		default:
			p.frame = probeFrame([macSize]byte(t.MAC), a.Addr)
		}
		s.suspects = append(s.suspects, p)
	}
}

// joinSuspects joins the groups of the addresses of IPv6. By an interface whose
// group cannot be joined no probe can be sent either, and that is told.
func (s *session) joinSuspects() {
	for _, p := range s.suspects {
		if !p.decided && p.result.Address.Is6() {
			p.failure = s.wire.join(p.target.Index, p.result.Address)
		}
	}
}

// probeSuspects sends the probes that are due, and is content with addresses
// for which nobody has spoken up in time.
func (s *session) probeSuspects(now time.Time) {
	drained := false
	for _, p := range s.suspects {
		if !p.isDue(now) {
			continue
		}
		switch {
		case p.waits:
			s.expire(&p.check)
			continue
		case p.sent < p.probes:
			p.probe(s.wire, now)
			continue
		case !drained: // what came in time may not have been read in time
			for _, w := range s.wires {
				w.drain(s.sighted)
			}
			drained = true
		}
		if !p.decided {
			s.decide(&p.check, p.unknown(s.hindrance(&p.check)))
		}
	}
}

// probe sends one probe, and says when the next is due, or the end.
func (p *suspect) probe(w *wire, now time.Time) {
	p.sent++
	p.due = now.Add(p.interval)
	if p.sent == p.probes {
		p.due = now.Add(p.rest)
	}
	if err := w.send(p.target.Index, p.frame); err != nil {
		p.failure = err
		return
	}
	p.result.Tries++
}

// unknown returns an error if silence says nothing: no probe could be sent, or
// the interface is no longer ready.
func (p *suspect) unknown(hindrance string) error {
	prefix := fmt.Sprintf("%s: address %v cannot be checked for conflicts: ", p.target.where(), p.result.Address)
	switch {
	case hindrance != "":
		return errors.New(prefix + hindrance)
	case p.result.Tries == 0:
		return fmt.Errorf("%s%w", prefix, p.failure)
	}
	return nil
}

// sighted takes in what was seen on a link. As long as others are waited for,
// it also changes what was taken for well. The pod's own interfaces may answer
// for each other where they are on one link.
func (s *session) sighted(a arrival) {
	if s.macs[string(a.mac[:])] {
		return
	}
	s.sightedGateway(a)
	for _, p := range s.suspects {
		here := p.target.Index == a.index
		if a.parent != "" {
			here = p.target.Parent == a.parent
		}
		if !here || p.result.Address != a.addr || len(p.result.MAC) > 0 {
			continue
		}
		p.result.MAC = a.hardware()
		s.decide(&p.check, p.conflict(a.sighting))
	}
}

func (p *suspect) conflict(s sighting) error {
	if s.probe {
		return fmt.Errorf("%s: address %v is wanted by %v too, which asks whether it can have it", p.target.where(), s.addr, s.hardware())
	}
	return fmt.Errorf("%s: address %v is in use by %v", p.target.where(), s.addr, s.hardware())
}
