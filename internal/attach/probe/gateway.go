package probe

import (
	"fmt"
	"net"
	"time"

	"railhead/internal/kernel/rtnl"
)

// gateway is a check whether a gateway is there.
type gateway struct {
	check

	// unlisted says that the kernel has no room to ask for it, so that it is
	// asked for on the wire.
	unlisted bool
}

// addGateways adds what is to be asked about a target's gateways.
func (s *session) addGateways(t *Target) {
	if !t.Detect.Gateway {
		return
	}
	for _, addr := range t.Gateways {
		g := &gateway{check: newCheck(t, KindGateway)}
		g.result.Address = addr
		s.gateways = append(s.gateways, g)
	}
}

// askGateways asks again for those that have not answered in time. The kernel
// would too, but only once a second: it forgets what it asked.
func (s *session) askGateways(now time.Time) {
	due := s.dueGateways(now)
	for _, g := range due {
		if g.result.Tries > 0 { // a look, lest an event was lost
			s.lookNeighbours()
			break
		}
	}
	var asked []*gateway
	var requests []rtnl.Request
	first := false
	for _, g := range due {
		switch {
		case g.decided:
		case g.waits:
			s.expire(&g.check)
		case g.result.Tries == g.detect.Retries:
			s.decide(&g.check, g.unanswered(s.hindrance(&g.check)))
		default:
			if g.unlisted {
				s.askOnWire(g, now)
				continue
			}
			first = first || g.result.Tries == 0
			asked = append(asked, g)
			requests = append(requests, g.ask(now)...)
		}
	}
	s.request(asked, requests)
	if first {
		s.lookNeighbours() // what is known already causes no event
	}
}

func (s *session) dueGateways(now time.Time) []*gateway {
	var due []*gateway
	for _, g := range s.gateways {
		if g.isDue(now) {
			due = append(due, g)
		}
	}
	return due
}

// ask returns the two requests for one try.
func (g *gateway) ask(now time.Time) []rtnl.Request {
	g.result.Tries++
	g.due = now.Add(g.detect.Timeout)
	n := rtnl.Neighbour{LinkIndex: g.target.Index, IP: g.result.Address.WithZone("")}
	if g.result.Tries == 1 {
		return []rtnl.Request{rtnl.NeighbourSet{Neighbour: n, Use: true}}
	}
	return []rtnl.Request{rtnl.NeighbourDelete{Neighbour: n}, rtnl.NeighbourSet{Neighbour: n, Use: true}}
}

// request has the kernel ask for gateways. That there is nothing to forget is
// no error.
func (s *session) request(asked []*gateway, requests []rtnl.Request) {
	if len(requests) == 0 {
		return
	}
	errs := s.client.Do(requests...)
	if errs == nil {
		return
	}
	i := 0
	for _, g := range asked {
		if _, forgets := requests[i].(rtnl.NeighbourDelete); forgets {
			i++
		}
		if err := errs[i]; err != nil {
			s.refused(g, err)
		}
		i++
	}
}

// lookNeighbours takes in all that the kernel knows. What it cannot say now it
// may say in an event, or at the end of the next timeout.
func (s *session) lookNeighbours() {
	neighbours, _ := s.client.Neighbours()
	for _, n := range neighbours {
		s.neighbour(n)
	}
}

// neighbour takes in one entry of the neighbour table.
func (s *session) neighbour(n rtnl.Neighbour) {
	if !isAnswer(n) {
		return
	}
	for _, g := range s.gateways {
		if g.decided || g.result.Tries == 0 || g.target.Index != n.LinkIndex || g.result.Address.WithZone("") != n.IP {
			continue
		}
		g.result.MAC, _ = net.ParseMAC(n.Address) // an interface without MACs has none to show
		s.decide(&g.check, nil)
	}
}

// isAnswer reports whether an entry is one of a gateway that is there. The
// kernel has it from an answer, or it was told and asks nobody. One that is
// being confirmed ("probe") is none yet.
func isAnswer(n rtnl.Neighbour) bool {
	switch n.State {
	case "reachable", "stale", "delay", "permanent":
		return n.Address != ""
	case "noarp":
		return true
	}
	return false
}

// unanswered says that a gateway was silent, and why that may be.
func (g *gateway) unanswered(hindrance string) error {
	if hindrance != "" {
		hindrance = ": " + hindrance
	}
	return fmt.Errorf("%s: gateway %v did not answer within %v (%s)%s",
		g.target.where(), g.result.Address, waited(time.Since(g.begun)), requests(g.result.Tries), hindrance)
}
