package top

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// How Once asks an agent, which reads at times of its own.
const (
	onceMost  = 10                     // intervals at most that it waits for rates
	onceLeast = time.Minute            // that it is willing to wait, however short the interval is
	oncePoll  = 500 * time.Millisecond // to see within what time counters were read
)

// Once returns a frame of what went on during an interval. Where the source has
// not sampled the devices twice by then it waits for longer.
func Once(ctx context.Context, source Source, interval time.Duration) (*Frame, error) {
	most, poll := onceMost*interval, interval
	if _, isLocal := source.(InProcess); !isLocal {
		most, poll = max(most, onceLeast), min(interval, oncePoll)
	}
	history := History{Window: 2 * most}
	began := time.Now()
	for {
		s, err := scrape(ctx, source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source.Name(), err)
		}
		history.Add(s)
		took := time.Since(began)
		if took >= most || took >= interval && newTimeline(history.scrapes, history.moved).isSettled() {
			return history.Frame(), nil
		}
		if err := wait(ctx, poll); err != nil {
			return nil, err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Print writes a frame as a table of the width, 0 for all columns.
func (f *Frame) Print(w io.Writer, choice Choice, width int, hasColor bool) error {
	const all = 1 << 10
	if width <= 0 {
		width = all
	}
	s := newScreen("", newStyle(hasColor), choice)
	s.isPrinted = true
	s.show(f)
	rows := s.rows()
	s.width, s.height, s.selected = width, len(rows)+chrome, -1
	var b bytes.Buffer
	for _, line := range s.table(rows) {
		fmt.Fprintln(&b, line)
	}
	_, err := b.WriteTo(w)
	return err
}

// Chosen returns a frame with the rows that a choice lets through, in its
// order where their view has it.
func (f *Frame) Chosen(choice Choice) *Frame {
	chosen := *f
	for view, rows := range map[View]*[]Row{Devices: &chosen.Devices, Pods: &chosen.Pods, Workloads: &chosen.Workloads} {
		key := choice.Order
		if !slices.Contains(Orders(view), key) {
			key = Worst
		}
		kept := []Row{}
		for i := range *rows {
			if (*rows)[i].matches(choice.Filter) {
				kept = append(kept, (*rows)[i])
			}
		}
		order(kept, key, false)
		*rows = kept
	}
	return &chosen
}
