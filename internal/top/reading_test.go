package top

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// paced is an agent that reads each card at moments of its own: traffic at an
// interval, and events every 15 s and 60 s. Each card has a PF and two VFs,
// whose traffic makes a link as busy as is told.
type paced struct {
	began   time.Time
	traffic time.Duration
	cards   int
	busy    float64
	isBare  bool // ages are left out, as an administrator may
}

const linkSpeed = 50e9 // bytes per second

// Name tells a test which source it is.
func (p *paced) Name() string { return "paced" }

// Scrape returns what was read last.
func (p *paced) Scrape(context.Context) ([]byte, error) {
	return []byte(p.at(time.Since(p.began))), nil
}

// last is when a tier was read last, of those that the first of its readings
// came at a part of the interval.
func last(now, interval time.Duration, part float64) time.Duration {
	shift := time.Duration(part * float64(interval))
	if now < shift {
		return 0
	}
	return (now - shift).Truncate(interval) + shift
}

func (p *paced) at(now time.Duration) string {
	var b strings.Builder
	passes := 0
	for card := range p.cards {
		part := float64(1+card) / float64(p.cards+1)
		read := last(now, p.traffic, part)
		passes += int(read/p.traffic) + 1
		any := max(read, last(now, 15*time.Second, 1-part*0.9), last(now, time.Minute, part*0.7))
		for function, share := range []float64{0.2, 0.5, 0.3} {
			name := fmt.Sprintf("mlx5_%d", card+function*p.cards)
			fmt.Fprintf(&b, "rdma_port_info{device=%q,port=\"1\",pf_device=\"mlx5_%d\"} 1\n", name, card)
			fmt.Fprintf(&b, "rdma_port_speed_bytes_per_second{device=%q,port=\"1\"} %g\n", name, linkSpeed)
			fmt.Fprintf(&b, "rdma_port_receive_bytes_total{device=%q,port=\"1\"} %.0f\n", name, 1e15+share*p.busy*linkSpeed*read.Seconds())
			if p.isBare {
				continue
			}
			fmt.Fprintf(&b, "rdma_exporter_sample_age_seconds{device=%q} %.3f\n", name, (now - any).Seconds())
		}
	}
	fmt.Fprintf(&b, "# TYPE %[1]s histogram\n%[1]s_bucket{collector=\"traffic\",le=\"+Inf\"} %[2]d\n", collectDuration, passes)
	fmt.Fprintf(&b, "%[1]s_sum{collector=\"traffic\"} 1\n%[1]s_count{collector=\"traffic\"} %[2]d\n", collectDuration, passes)
	return b.String()
}

// TestUtilisation wants what is told of agents to be possible whenever they are
// asked, and not far below the truth.
func TestUtilisation(t *testing.T) {
	t.Parallel()
	const busy = 0.97
	for _, traffic := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second} {
		for _, asked := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 3700 * time.Millisecond} {
			for _, cards := range []int{0, 1, 3} {
				p := &paced{traffic: traffic, cards: max(1, cards), busy: busy, isBare: cards == 0}
				history := History{Window: DefaultWindow}
				for now := time.Minute; now < 110*time.Second; now += asked {
					s, err := Parse([]byte(p.at(now)), start.Add(now))
					if err != nil {
						t.Fatal(err)
					}
					history.Add(s)
					for _, row := range history.Frame().Devices {
						got, isKnown := row.Utilisation.Get()
						if got > busy*1.01 {
							t.Errorf("agent at %s, asked every %s, after %s: %s is used to %.3f, more than %.2f", traffic, asked, now, row.Name, got, busy)
						}
						hasAll := now > time.Minute+max(3*traffic, 3*asked)
						if hasAll && (!isKnown || got < 0.4*busy || cards > 1 && 2*asked < traffic && got < 0.8*busy) {
							t.Errorf("agent at %s, asked every %s, after %s: %s is used to %.3f (known: %t), less than %.2f", traffic, asked, now, row.Name, got, isKnown, busy)
						}
					}
				}
			}
		}
	}
}

// TestOnceOfAgent wants rates of every device, whatever the intervals are, and
// none for longer than it takes.
func TestOnceOfAgent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		traffic, interval, most time.Duration
		busy                    float64
	}{
		{time.Second, 15 * time.Second, 15 * time.Second, 0.9},
		{5 * time.Second, 200 * time.Millisecond, 11 * time.Second, 0.9},
		{5 * time.Second, 2 * time.Second, 11 * time.Second, 0.9},
		{5 * time.Second, 15 * time.Second, 15 * time.Second, 0.9},
		{15 * time.Second, 2 * time.Second, 31 * time.Second, 0.9},
		{5 * time.Second, 2 * time.Second, 16 * time.Second, 0}, // idle
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &paced{began: time.Now().Add(-time.Minute), traffic: tt.traffic, cards: 8, busy: tt.busy}
			began := time.Now()
			f, err := Once(t.Context(), p, tt.interval)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > tt.most || took < tt.interval {
				t.Errorf("%+v: it took %s", tt, took)
			}
			for _, row := range f.Devices {
				if got, isKnown := row.Utilisation.Get(); !isKnown || got > tt.busy*1.001 || got < tt.busy*0.9 {
					t.Errorf("%+v: %s is used to %.3f (known: %t)", tt, row.Name, got, isKnown)
				}
			}
		})
	}
}

// TestIdleAfterTraffic wants what stopped to be told as stopped.
func TestIdleAfterTraffic(t *testing.T) {
	t.Parallel()
	p := &paced{traffic: 5 * time.Second, cards: 8, busy: 0.5}
	history := History{Window: DefaultWindow}
	add := func(now, counted time.Duration) {
		text := p.at(now)
		if counted < now {
			ages := strings.Split(p.at(now), "\n")
			text = ""
			for i, line := range strings.Split(p.at(counted), "\n") {
				if strings.HasPrefix(line, sampleAge) {
					line = ages[i]
				}
				text += line + "\n"
			}
		}
		s, err := Parse([]byte(text), start.Add(now))
		if err != nil {
			t.Fatal(err)
		}
		history.Add(s)
	}
	now := time.Minute
	for ; now < 90*time.Second; now += 2 * time.Second {
		add(now, now)
	}
	stopped := now
	for ; now < stopped+25*time.Second; now += 2 * time.Second {
		add(now, stopped)
	}
	for _, row := range history.Frame().Devices {
		if row.Receive != known(0) {
			t.Errorf("%s receives %v, want 0", row.Name, row.Receive)
		}
	}
}

// TestIdleOrNew wants a device that was not read at first, as after a
// quarantine, to be waited for: it is not known to be idle.
func TestIdleOrNew(t *testing.T) {
	t.Parallel()
	text := func(counter string, passes int) string {
		return fmt.Sprintf("%s%s%s1\n# TYPE %[4]s histogram\n%[4]s_bucket{collector=\"traffic\",le=\"+Inf\"} %[5]d\n%[4]s_sum{collector=\"traffic\"} 1\n%[4]s_count{collector=\"traffic\"} %[5]d\n",
			state, counter, age, collectDuration, passes)
	}
	for _, tt := range []struct {
		name, first string
		passes      int
		want        Rate
	}{
		{"idle", rx + "5\n", 12, known(0)},
		{"read once", rx + "5\n", 11, Rate{}},
		{"new", "", 12, Rate{}},
	} {
		var history History
		for i, answer := range []string{text(tt.first, 10), text(rx+"5\n", tt.passes)} {
			s, err := Parse([]byte(answer), start.Add(time.Duration(i)*10*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			history.Window = DefaultWindow
			history.Add(s)
		}
		isSettled := newTimeline(history.scrapes, history.moved).isSettled()
		if got := history.Frame().Devices[0].Receive; got != tt.want || isSettled != tt.want.isKnown {
			t.Errorf("%s: received %v (settled: %t), want %v", tt.name, got, isSettled, tt.want)
		}
	}
}
