package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"railhead/internal/kernel/rtnl"
)

// check is what is asked about one address, and what is known of it so far.
type check struct {
	target  *Target
	detect  Detection
	result  Result
	waits   bool      // its interface is not ready
	begun   time.Time // when it was ready
	due     time.Time // when something is to be done about it
	decided bool
}

func newCheck(t *Target, kind Kind) check {
	return check{
		target: t,
		detect: t.Detect.orDefault(),
		result: Result{Interface: t.Interface, Rail: t.Rail, Kind: kind},
	}
}

// isDue reports whether something is to be done about the check.
func (c *check) isDue(now time.Time) bool { return !c.decided && !now.Before(c.due) }

// session is one Run: checks, the sockets that they need, and what comes in by
// these. But for the two goroutines that read, all is done on Run's.
type session struct {
	netnsFD    int
	background *sync.WaitGroup // of what outlives Run: who closes packet sockets and who reads from them

	start    time.Time
	patience time.Duration
	gateways []*gateway
	suspects []*suspect
	macs     map[string]bool    // of all targets
	ready    map[int]*readiness // by the interface's index

	client *rtnl.Client
	events *rtnl.Subscription
	wire   *wire   // in the pod; nil: none is needed yet
	wires  []*wire // it, and those on parents

	changes chan []rtnl.Event // empty: what has changed is to be looked up
	heard   chan *wire        // those with frames to receive
	ended   chan struct{}
	readers sync.WaitGroup
}

func newSession(netnsFD int, background *sync.WaitGroup, targets []Target) *session {
	s := &session{
		netnsFD: netnsFD, background: background,
		start:   time.Now(),
		macs:    map[string]bool{},
		ready:   map[int]*readiness{},
		changes: make(chan []rtnl.Event),
		heard:   make(chan *wire),
		ended:   make(chan struct{}),
	}
	for i := range targets {
		t := &targets[i]
		s.macs[string(t.MAC)] = true
		s.addGateways(t)
		s.addSuspects(t)
	}
	return s
}

// open opens what the checks need. Events are waited for before anything is
// asked, so that no answer is missed.
func (s *session) open() (err error) {
	config := &rtnl.Config{NetNS: s.netnsFD}
	if s.events, err = rtnl.Subscribe(config, rtnl.Links, rtnl.Addresses, rtnl.Neighbours); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if s.client, err = rtnl.Dial(config); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if len(s.suspects) == 0 {
		return nil
	}
	if err := s.openWire(); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	s.joinSuspects()
	return nil
}

// close ends the readers and closes the sockets, the packet socket in the
// background.
func (s *session) close() {
	close(s.ended)
	if s.events != nil {
		_ = s.events.Close()
	}
	if s.client != nil {
		_ = s.client.Close()
	}
	for _, w := range s.wires {
		w.closeIn(s.background)
	}
	s.readers.Wait()
}

// run asks until all is known or ctx ends.
func (s *session) run(ctx context.Context) {
	s.start = time.Now()
	s.begin()
	s.read()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Now()
		s.askGateways(now)
		s.probeSuspects(now)
		due, open := s.next()
		if !open {
			return
		}
		timer.Reset(time.Until(due))
		select {
		case events := <-s.changes:
			s.changed(events)
		case w := <-s.heard:
			w.drain(s.sighted)
		case <-timer.C:
		case <-ctx.Done():
			s.abandon(context.Cause(ctx))
			return
		}
	}
}

// read starts the readers.
func (s *session) read() {
	s.readers.Go(s.readEvents)
	for _, w := range s.wires {
		s.background.Go(func() { s.readFrames(w) })
	}
}

// readEvents passes on what the kernel says, and nothing where it cannot be
// understood or was lost.
func (s *session) readEvents() {
	for {
		events, err := s.events.Receive()
		if errors.Is(err, fs.ErrClosed) {
			return
		}
		if err != nil {
			events = nil
		}
		select {
		case s.changes <- events:
		case <-s.ended:
			return
		}
		if err != nil && !errors.Is(err, rtnl.ErrOverrun) {
			return // at the latest, the end of a timeout looks the rest up
		}
	}
}

// readFrames tells run that a wire has frames. The frames stay in the socket: before
// run decides that an address is free, it drains the socket and sees every frame.
func (s *session) readFrames(w *wire) {
	for w.await() == nil {
		select {
		case s.heard <- w:
		case <-s.ended:
			return
		}
	}
}

// checks calls f for all.
func (s *session) checks(f func(*check)) {
	for _, g := range s.gateways {
		f(&g.check)
	}
	for _, p := range s.suspects {
		f(&p.check)
	}
}

// changed takes in what the kernel says.
func (s *session) changed(events []rtnl.Event) {
	if len(events) == 0 {
		s.lookLinks()
		s.lookAddresses()
		s.lookNeighbours()
	}
	for _, e := range events {
		switch {
		case e.Deleted:
		case e.Link != nil:
			s.link(*e.Link)
		case e.Address != nil:
			s.address(*e.Address)
		case e.Neighbour != nil:
			s.neighbour(*e.Neighbour)
		}
	}
	s.release()
}

// next returns when something is to be done next, and false if all is known.
func (s *session) next() (due time.Time, open bool) {
	s.checks(func(c *check) {
		if !c.decided && (!open || c.due.Before(due)) {
			due, open = c.due, true
		}
	})
	return due, open
}

// decide notes that a check is well, or with an error that it is not.
func (s *session) decide(c *check, err error) {
	c.decided = true
	c.result.Waited = time.Since(s.start)
	c.result.OK, c.result.Err = err == nil, err
}

// abandon ends what is not known.
func (s *session) abandon(cause error) {
	s.checks(func(c *check) {
		if c.decided {
			return
		}
		s.decide(c, fmt.Errorf("%s: %s %v: given up after %v (%s): %w", c.target.where(), asked(c.result.Kind), c.result.Address,
			waited(time.Since(s.start)), requests(c.result.Tries), cause))
	})
}

// asked is what a check is called in errors about itself.
func asked(k Kind) string {
	if k == KindGateway {
		return "check of gateway"
	}
	return "check for conflicts of address"
}

func (s *session) report() Report {
	var r Report
	s.checks(func(c *check) { r.Results = append(r.Results, c.result) })
	return r
}
