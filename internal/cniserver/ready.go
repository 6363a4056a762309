package cniserver

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"railhead/internal/attach/record"
)

// readyEvery is how often it is looked whether pods can be attached.
const readyEvery = 5 * time.Second

// need is something without which no pod with networks of its own is attached.
// All others are, and STATUS does not say it: a node that no pod can start on would
// wait for a controller for ever that has to start on it.
type need struct {
	name string // for metrics
	what string // for people
	err  error  // why it is not there; nil if it is
}

// needs are all of them, in their order.
func (s *Server) needs() []need {
	list := []need{
		{"restart", "the agent", nil},
		{"cluster", "cluster", s.config.Cluster.Ready()},
		{"addresses", "addresses", s.config.Addresses.Ready()},
		{"records", "records of attachments", s.diskError()},
	}
	select {
	case <-s.started:
	default:
		list[0].err = errors.New("it has not taken up the records of its last run yet")
	}
	return list
}

// readiness is a metric of what is needed.
type readiness struct {
	desc  *prometheus.Desc
	needs func() []need
}

func newReadiness(needs func() []need) *readiness {
	return &readiness{needs: needs, desc: prometheus.NewDesc("railhead_cni_ready",
		"1 where this is no reason why pods with networks of their own cannot be attached, else 0. Pods without are attached all the same.",
		[]string{"reason"}, nil)}
}

// Describe implements prometheus.Collector.
func (r *readiness) Describe(to chan<- *prometheus.Desc) { to <- r.desc }

// Collect implements prometheus.Collector.
func (r *readiness) Collect(to chan<- prometheus.Metric) {
	for _, n := range r.needs() {
		ready := 1.0
		if n.err != nil {
			ready = 0
		}
		to <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, ready, n.name)
	}
}

// tellReady logs until ctx ends what keeps pods from being attached, when that
// changes.
func (s *Server) tellReady(ctx context.Context) {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for told := ""; ; {
		if s.tryDisk(); s.diskError() == nil {
			s.keepGone()
		}
		told = s.tellNeeds(told)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// tellNeeds logs what is not there, if that is other than what was told, and
// returns what is told now.
func (s *Server) tellNeeds(told string) string {
	var names, reasons []string
	for _, n := range s.needs() {
		if n.err != nil {
			names, reasons = append(names, n.name), append(reasons, n.what+": "+n.err.Error())
		}
	}
	now := strings.Join(names, ", ")
	switch now {
	case told:
	case "":
		s.log.Info("pods can be attached to networks of their own")
	default:
		s.log.Warn("pods cannot be attached to networks of their own yet; all others can", "missing", now, "because", reasons)
	}
	return now
}

// diskError is that of the last write of a record.
func (s *Server) diskError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.diskErr
}

// tryDisk writes, while the last record could not be: no pod may come to try.
func (s *Server) tryDisk() {
	if s.diskError() == nil {
		return
	}
	const name = "is-there-space" // no runtime has such a sandbox
	sync, err := s.config.Records.Put(record.Attachment{ContainerID: name, State: record.Detaching})
	if err == nil {
		err = sync()
		_, gone := s.config.Records.Remove(name)
		err = errors.Join(err, gone)
	}
	_ = s.disk(err) // which notes it
}
