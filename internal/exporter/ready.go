package exporter

import (
	"fmt"
	"sync"
	"time"
)

// notReady says why a scrape would not show all devices. It is empty where it
// would, and stays so: a card that comes later does not take the others away.
func (e *Exporter) notReady() string {
	if e.wasReady.Load() {
		return ""
	}
	if e.snapshot.Load() == nil {
		return "the devices are not known yet"
	}
	e.mu.Lock()
	nics := e.nics
	e.mu.Unlock()
	waiting, first := 0, ""
	for _, n := range nics {
		if !n.isRead.Load() {
			waiting++
			first = n.id
		}
	}
	switch {
	case waiting == 0 && !e.knowsPods():
		return "the pods are not known yet"
	case waiting == 0:
		e.wasReady.Store(true)
		return ""
	}
	return fmt.Sprintf("%d of %d network cards were not read yet, among them %s", waiting, len(nics), first)
}

// podsPatience is how long pods are kept back for until they are known by more
// than their UID. An API server that is away hides them no longer.
const podsPatience = 10 * time.Second

// awaited is the first answer of the source of pods.
type awaited struct {
	mu    sync.Mutex
	since time.Time // when it was first asked for
	ended bool
}

// knowsPods tells whether pods may be told of. Their series would begin under
// the UID else, and begin anew a moment later.
func (e *Exporter) knowsPods() bool {
	a := &e.awaited
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || e.config.Attributor == nil {
		return true
	}
	now := e.config.Now()
	if a.since.IsZero() {
		a.since = now
	}
	a.ended = e.config.Attributor.Synced() || now.Sub(a.since) >= podsPatience
	return a.ended
}
