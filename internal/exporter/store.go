package exporter

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// part is a share of what is exposed of a device, renewed at once.
type part uint8

// The parts of a section: one a tier, and those of pods, which the tiers feed.
const (
	trafficPart part = iota // as counters.Traffic
	errorsPart
	slowPart
	podTrafficPart
	podErrorsPart
	podSlowPart
	parts
)

// page is what a part was at one moment. It is immutable.
type page struct {
	rows    []row
	expires time.Time // when it is too old to be served; zero for never
}

// section is all that is exposed of a device, or of the node.
type section struct {
	mu    sync.Mutex // for writers
	pages atomic.Pointer[[parts]*page]
}

// page returns a part of the section; nil where it has none.
func (s *section) page(p part) *page {
	if pages := s.pages.Load(); pages != nil {
		return pages[p]
	}
	return nil
}

// publish replaces parts of the section at once. A scrape sees all of them or
// none.
func (s *section) publish(changed map[part]*page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pages [parts]*page
	if old := s.pages.Load(); old != nil {
		pages = *old
	}
	for p, page := range changed {
		pages[p] = page
	}
	s.pages.Store(&pages)
}

// store holds the sections in the order of their exposition. It is safe for
// concurrent use; readers never wait.
type store struct {
	sections atomic.Pointer[[]*section]
}

// arrange replaces the list of sections. What is in no section of the list is
// exposed no more.
func (s *store) arrange(list []*section) {
	list = slices.Clone(list)
	s.sections.Store(&list)
}

// pages appends all that may be served now.
func (s *store) pages(now time.Time, dst []*page) []*page {
	sections := s.sections.Load()
	if sections == nil {
		return dst
	}
	for _, section := range *sections {
		pages := section.pages.Load()
		if pages == nil {
			continue
		}
		for _, p := range pages {
			if p != nil && (p.expires.IsZero() || now.Before(p.expires)) {
				dst = append(dst, p)
			}
		}
	}
	return dst
}
