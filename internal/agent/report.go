package agent

import (
	"context"
	"log/slog"

	"railhead/internal/inventory"
)

// report tells an administrator which devices the agent found, and what it
// could not read of them or was asked in vain: each once, until it is mended.
func (w reporter) report(ctx context.Context) error {
	told := map[string]bool{}
	for {
		changed := w.watcher.Changed()
		if s := w.watcher.Snapshot(); s != nil {
			told = w.problems(s, told)
			w.devices(s)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// reporter logs what changes in the inventory of a node.
type reporter struct {
	watcher *inventory.Watcher
	node    string
	log     *slog.Logger
	last    *counts
}

// counts are how many devices there are.
type counts struct{ devices, elsewhere, rails int }

func (w reporter) devices(s *inventory.Snapshot) {
	now, rails := counts{}, map[int]bool{}
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.RDMA == nil {
			continue
		}
		now.devices++
		if d.RDMA.NetNS != nil {
			now.elsewhere++
		}
		if d.Rail != nil {
			rails[*d.Rail] = true
		}
	}
	now.rails = len(rails)
	if now == *w.last {
		return
	}
	*w.last = now
	w.log.Info("RDMA devices", "node", w.node, "devices", now.devices, "in_other_namespaces", now.elsewhere,
		"rails", now.rails, "mode", s.System.NetNSMode)
}

// problems logs those that are new, and returns those that there are.
func (w reporter) problems(s *inventory.Snapshot, told map[string]bool) map[string]bool {
	now := make(map[string]bool, len(s.Problems))
	for _, p := range s.Problems {
		now[p] = true
		if !told[p] {
			w.log.Warn("the inventory is not complete", "problem", p)
		}
	}
	return now
}
