package exporter

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/inventory"
)

// status is what the exporter knows of its own work beside the devices' health.
type status struct {
	mu         sync.Mutex
	isConfused bool // whose devices are, could not be found out fully
	unknown    map[unknownCounter]uint64
	lines      map[statusKey]*line
}

// unknownCounter is a counter of the kernel that the table does not know.
type unknownCounter struct{ driver, name string }

// statusKey tells the lines of the status apart.
type statusKey struct {
	family string
	pod    attribution.Pod
	labels [3]string
}

// attributed notes how finding out whose devices are went, and logs when that
// changes.
func (s *status) attributed(err error, logger *slog.Logger) {
	s.mu.Lock()
	isNews := err != nil && !s.isConfused
	s.isConfused = err != nil
	s.mu.Unlock() // a scrape must not wait for who reads the log
	if isNews {
		logger.Warn("whose the devices are is not fully known", "error", err)
	}
}

// tellUnknown notes the counters of the device that the table does not know.
func (d *device) tellUnknown() {
	names := d.reader.Unknown()
	if len(names) <= d.unknown {
		return
	}
	driver := counters.Driver(d.found.Load())
	s := &d.exporter.status
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unknown == nil {
		s.unknown = map[unknownCounter]uint64{}
	}
	for _, name := range names[d.unknown:] {
		s.unknown[unknownCounter{driver, name}]++
	}
	d.unknown = len(names)
}

// statusPage is what the exporter tells of its work now.
func (e *Exporter) statusPage(now time.Time) *page {
	e.mu.Lock()
	nics := e.nics
	e.mu.Unlock()
	w := statusWriter{e: e, now: now, pods: map[podKey]holder{}}
	e.status.mu.Lock()
	defer e.status.mu.Unlock()
	w.lines, e.status.lines = e.status.lines, make(map[statusKey]*line, len(e.status.lines))
	w.hear()
	for _, n := range nics {
		for _, d := range n.list() {
			w.device(d)
		}
	}
	w.collectors()
	w.exportedPods()
	for _, u := range slices.SortedFunc(maps.Keys(e.status.unknown), func(a, b unknownCounter) int {
		return strings.Compare(a.driver+" "+a.name, b.driver+" "+b.name)
	}) {
		w.row(e.status.unknown[u], statusKey{family: "rdma_exporter_unknown_counters", labels: [3]string{u.driver, u.name}}, "driver", "name")
	}
	sortRows(w.rows)
	return &page{rows: w.rows}
}

// statusWriter collects the rows of a status page. Its lock is that of the
// status.
type statusWriter struct {
	e     *Exporter
	now   time.Time
	rows  []row
	lines map[statusKey]*line // of the last page

	failed    [counters.Tiers]bool
	isStarted bool
	pods      map[podKey]holder

	heard      []inventory.RDMAEventCount
	hasMonitor bool
}

// row appends a row. Its line is that of the last page where that had it.
func (w *statusWriter) row(value uint64, key statusKey, names ...string) {
	l, ok := w.lines[key]
	if !ok {
		l = w.line(key, names)
	}
	w.e.status.lines[key] = l
	if l != nil {
		w.rows = append(w.rows, row{l, value})
	}
}

func (w *statusWriter) line(key statusKey, names []string) *line {
	f := w.e.catalog.known(key.family)
	if !f.isWanted {
		return nil
	}
	if key.pod != (attribution.Pod{}) {
		return newLine(f, podInfo(&key.pod), 1)
	}
	var labels []counters.Label
	for i, name := range names {
		labels = append(labels, counters.Label{Name: name, Value: key.labels[i]})
	}
	if key.family == ageFamily {
		return newLine(f, labels, 1e-3)
	}
	return newLine(f, labels, 1)
}

const ageFamily = "rdma_exporter_sample_age_seconds"

// device appends how reading a device goes.
func (w *statusWriter) device(d *device) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, h := d.found.Load(), &d.health
	name := found.RDMA.Name
	w.events(found)
	for t, isFailing := range h.failing {
		w.failed[t] = w.failed[t] || isFailing
	}
	w.isStarted = w.isStarted || d.isRead.Load()
	if !h.sampled.IsZero() {
		age := max(w.now.Sub(h.sampled), 0)
		w.row(uint64(age.Milliseconds()), statusKey{family: ageFamily, labels: [3]string{name}}, "device")
	}
	for _, reason := range h.quarantine.reasons() {
		w.row(1, statusKey{family: "rdma_exporter_device_quarantined", labels: [3]string{name, reason}}, "device", "reason")
	}
	for _, f := range slices.SortedFunc(maps.Keys(h.errors), compareFailures) {
		w.row(h.errors[f], statusKey{family: "rdma_exporter_read_errors", labels: [3]string{name, f.source, f.errno}}, "device", "source", "errno")
	}
	if n := d.setbacks.Load(); n > 0 {
		w.row(n, statusKey{family: "rdma_exporter_setbacks", labels: [3]string{name}}, "device")
	}
	if !h.sampled.IsZero() && w.now.Before(d.expiry(w.e.tiers[0], h.sampled)) {
		for _, holder := range h.holders {
			w.hold(holder)
		}
	}
}

// hold notes a pod. Of several devices that it has, the attribution that is most
// exact counts; and of what is known of it, the most.
func (w *statusWriter) hold(h holder) {
	known, ok := w.pods[keyOf(h.pod)]
	if ok {
		rank := func(h holder) int { return slices.Index(attributions(), h.attribution) }
		if rank(known) < rank(h) {
			h.attribution = known.attribution
		}
		if known.pod.Namespace != "" {
			h.pod = known.pod
		}
	}
	w.pods[keyOf(h.pod)] = h
}

// collectors appends whether the last passes went well.
func (w *statusWriter) collectors() {
	if !w.isStarted {
		return
	}
	for _, t := range w.e.tiers {
		w.collector(collectorName(t), !w.failed[t])
	}
	if w.e.config.Attributor != nil {
		w.collector("attribution", !w.e.status.isConfused)
	}
	for _, name := range slices.Sorted(maps.Keys(w.e.config.Sources)) {
		w.collector(name, w.e.config.Sources[name]() == nil)
	}
}

func (w *statusWriter) collector(name string, isWell bool) {
	w.row(oneIf(isWell), statusKey{family: "rdma_exporter_collector_success", labels: [3]string{name}}, "collector")
}

// exportedPods appends the pods that have or use devices, and how many there
// are of each kind.
func (w *statusWriter) exportedPods() {
	if w.e.config.Attributor == nil {
		return
	}
	count := map[string]uint64{}
	for _, h := range slices.SortedFunc(maps.Values(w.pods), compareHolders) {
		count[h.attribution]++
		w.row(1, statusKey{family: "rdma_pod_info", pod: *h.pod})
	}
	for _, method := range attributions() {
		w.row(count[method], statusKey{family: "rdma_exporter_pods", labels: [3]string{method}}, "attribution")
	}
}

func compareHolders(a, b holder) int {
	return cmp.Or(
		cmp.Compare(a.pod.Namespace, b.pod.Namespace),
		cmp.Compare(a.pod.Name, b.pod.Name),
		cmp.Compare(a.pod.UID, b.pod.UID),
	)
}

func oneIf(isTrue bool) uint64 {
	if isTrue {
		return 1
	}
	return 0
}
