package exporter

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/kernel/fakekernel"
)

// blockingRig is a rig in which the errors of a VF, mlx5_1, can be made to block.
// Its time is that of the bubble.
type blockingRig struct{ *rig }

func newBlockingRig(t *testing.T, change func(*Config)) *blockingRig {
	t.Helper()
	r := newRig(t, 1, 1, func(c *Config) {
		c.Now, c.Metrics = nil, Filter{Exclude: "(go|process)_.*"}
		if change != nil {
			change(c)
		}
	})
	return &blockingRig{r}
}

func (b *blockingRig) delay(d time.Duration) { b.node.own.Delay(fakekernel.GetStatistics, d, 1) }

// read counts and samples.
func (b *blockingRig) read(count uint64, tiers ...counters.Tier) {
	b.node.counted.Store(count)
	b.e.sample(b.t.Context(), b.snap, time.Now(), tiers)
}

const (
	vfBytes  = `rdma_port_receive_bytes_total{device="mlx5_1"`
	vfErrors = `rdma_out_of_buffer_total{device="mlx5_1"`
	vfBlocks = `rdma_exporter_device_quarantined{device="mlx5_1",reason="blocked"`
	vfAge    = `rdma_exporter_sample_age_seconds{device="mlx5_1"`
)

func success(t counters.Tier) string {
	return `rdma_exporter_collector_success{collector="` + collectorName(t) + `"`
}

// TestTierBlocks has the errors of a function block: its traffic, which was
// read before, is served, and goes on to be read without the block being
// forgiven; the errors are asked for again when their time has come, which
// counts from the end of the wait.
func TestTierBlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBlockingRig(t, nil)
		all := []counters.Tier{counters.Traffic, counters.Errors, counters.Slow}
		b.read(1000, all...)
		b.want(map[string]string{vfBytes: "1000", vfErrors: "1000", success(counters.Errors): "1"})
		b.delay(30 * time.Second)
		start := time.Now()
		b.read(2000, all...)
		b.want(map[string]string{
			vfBytes: "2000", vfErrors: "1000", vfBlocks: "1",
			success(counters.Traffic): "1", success(counters.Errors): "0", success(counters.Slow): "0",
			`rdma_exporter_collect_duration_seconds_sum{collector="errors"`: "5",
		})
		b.read(2000, counters.Traffic)
		b.want(map[string]string{success(counters.Traffic): "0"})
		time.Sleep(time.Until(start.Add(34 * time.Second)))
		b.delay(0)
		asked := b.node.own.Asked(fakekernel.GetStatistics)
		b.read(3000, counters.Traffic, counters.Errors)
		b.want(map[string]string{vfBytes: "3000", vfBlocks: "1", success(counters.Traffic): "1", success(counters.Errors): "0"})
		if n := b.node.own.Asked(fakekernel.GetStatistics) - asked; n != 1 {
			t.Errorf("statistics were asked for %d times, want once, of the PF", n)
		}
		time.Sleep(time.Until(start.Add(35 * time.Second)))
		b.read(4000, all...)
		b.want(map[string]string{vfBytes: "4000", vfErrors: "4000", vfBlocks: "", success(counters.Errors): "1", success(counters.Slow): "1"})
	})
}

// TestLateAnswer has an answer come when it is too old to be served: nothing
// was sampled then.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBlockingRig(t, nil)
		b.read(1000, counters.Traffic)
		time.Sleep(10 * time.Second)
		b.delay(time.Minute)
		b.read(2000, counters.Errors)
		time.Sleep(time.Minute)
		synctest.Wait()
		b.want(map[string]string{vfErrors: "", vfAge: "75"})
	})
}

// TestPatience reads a healthy function, whose firmware takes a second, in
// intervals that are shorter.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBlockingRig(t, func(c *Config) { c.Intervals[counters.Traffic] = 200 * time.Millisecond })
		b.delay(time.Second)
		b.read(1000, counters.Errors)
		time.Sleep(2 * time.Second)
		b.want(map[string]string{vfErrors: "1000", vfBlocks: ""})
		b.e.config.Intervals[counters.Traffic] = time.Minute
		if got := b.e.nics[0].patience(); got != time.Minute {
			t.Errorf("patience %v, want the interval", got)
		}
	})
}

// heard is a handler that does something with each record.
type heard struct {
	slog.Handler

	do func()
}

func (h heard) Handle(context.Context, slog.Record) error {
	h.do()
	return nil
}

// TestLogHoldsNothing logs when nothing is locked that a scrape needs: nobody
// may read the log.
func TestLogHoldsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := 0
		var b *blockingRig
		logger := func(isFree func() bool) *slog.Logger {
			return slog.New(heard{slog.NewTextHandler(t.Output(), nil), func() {
				if told++; !isFree() {
					t.Error("it is logged under a lock")
				}
			}})
		}
		b = newBlockingRig(t, func(c *Config) {
			c.Logger = logger(func() bool {
				d := b.e.nics[0].list()[1]
				isFree := d.mu.TryLock()
				if isFree {
					d.mu.Unlock()
				}
				return isFree
			})
		})
		b.delay(10 * time.Second)
		b.read(1000, counters.Errors) // blocks
		b.delay(0)
		time.Sleep(40 * time.Second)
		b.read(1000, counters.Errors) // works again
		b.node.own.Refuse(fakekernel.GetStatistics, 5, 1)
		b.read(1000, counters.Errors) // fails
		if told != 3 {
			t.Errorf("%d messages, want 3", told)
		}
		var s status
		s.attributed(errors.New("odd"), logger(func() bool {
			isFree := s.mu.TryLock()
			if isFree {
				s.mu.Unlock()
			}
			return isFree
		}))
		if told != 4 {
			t.Error("it is not told that devices are nobody's")
		}
	})
}

// TestLinesAreKept renders the same samples once, whatever their values are, and
// others anew: with one less, in another order, of another pod.
func TestLinesAreKept(t *testing.T) {
	t.Parallel()
	e := newTestExporter(t, nil)
	received := &counters.Series{Family: &counters.Family{Name: "b"}, Labels: []counters.Label{{Name: "device", Value: "d"}}}
	sent := &counters.Series{Family: &counters.Family{Name: "a"}, Labels: received.Labels, Scale: 4}
	var l lines
	before := &line{}
	for i, test := range []struct {
		series []*counters.Series
		pod    *attribution.Pod
		want   string
		isKept bool
	}{
		{[]*counters.Series{sent, received}, nil, "a{d} 0 b{d} 1 ", false},
		{[]*counters.Series{sent, received}, nil, "a{d} 40 b{d} 11 ", true},
		{[]*counters.Series{received}, nil, "b{d} 20 ", false},
		{[]*counters.Series{received, sent}, nil, "a{d} 124 b{d} 30 ", false},
		{[]*counters.Series{received, sent}, &attribution.Pod{}, "a{d} 164 b{d} 40 ", false},
		{nil, nil, "", false},
		{[]*counters.Series{received}, nil, "b{d} 60 ", false},
	} {
		var samples []counters.Sample
		for j, series := range test.series {
			samples = append(samples, counters.Sample{Series: series, Value: uint64(10*i + j)})
		}
		rows := l.rows(e, samples, subject{pod: test.pod})
		var text []byte
		for _, r := range rows {
			text = r.line.appendTo(text, r.value, false)
		}
		got := strings.NewReplacer("_total", "", `device="d"`, "d", "\n", " ").Replace(string(text))
		if got != test.want {
			t.Errorf("%d: %q, want %q", i, got, test.want)
		}
		if len(rows) > 0 && (rows[0].line == before) != test.isKept {
			t.Errorf("%d: lines are kept: %v, want %v", i, rows[0].line == before, test.isKept)
		}
		if len(rows) > 0 {
			before = rows[0].line
		}
	}
}

// TestTexts wants the same labels to share a text, and others to have their own.
func TestTexts(t *testing.T) {
	t.Parallel()
	shared := texts{}
	one, two := []counters.Label{label("a", "1"), label("b", "")}, []counters.Label{label("a", "2")}
	first, second, other := shared.of(one), shared.of(one[:1]), shared.of(two)
	if first != `{a="1"} ` || other != `{a="2"} ` || shared.of(nil) != " " {
		t.Errorf("%q and %q", first, other)
	}
	if unsafe.StringData(first) != unsafe.StringData(second) {
		t.Error("the same labels do not share a text")
	}
}
