package attribution

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"syscall"

	"railhead/internal/kernel/rdmanl"
)

// bind binds the queue pairs of pods that are not bound yet.
func (b *Binder) bind(c *rdmanl.Client, p *boundPort, mode rdmanl.CounterMode, at counterPort) error {
	if mode.Mode != "none" && (mode.Mode != "manual" || len(p.bound) == 0) {
		b.say(p, at.device, at.port, "an administrator has bound queue pairs otherwise, which is left alone")
		return nil
	}
	counters, err := c.QPCounters(p.index, at.port)
	if err != nil {
		return err
	}
	p.prune(counters)
	qps, err := c.QPs(p.index)
	errs := []error{err}
	for i := range qps {
		q := &qps[i]
		if q.Port != at.port || q.KernelName != "" || q.PID == 0 || isBound(counters, q.Number) {
			continue
		}
		process, err := b.a.processes.of(q.PID)
		if err != nil || process.pod == "" {
			continue // of the host, or it has just ended
		}
		if err := p.bindQP(c, at.port, q.Number, unknownPod(process.pod)); err != nil {
			errs = append(errs, fmt.Errorf("device %s, queue pair %d of pod %s: %w", at.device, q.Number, process.pod, err))
		}
	}
	b.say(p, at.device, at.port, "")
	return errors.Join(errs...)
}

// bindQP binds a queue pair to the set of its pod, or to a new one where the
// pod has none or lost it with its last queue pair.
func (p *boundPort) bindQP(c *rdmanl.Client, port int, qpn uint32, pod *Pod) error {
	set, ok := p.sets[keyOf(pod)]
	if ok {
		err := c.BindQPToCounter(p.index, port, qpn, set)
		if !errors.Is(err, fs.ErrNotExist) {
			return p.noteBound(qpn, set, pod, err)
		}
	}
	set, err := c.BindQP(p.index, port, qpn)
	return p.noteBound(qpn, set, pod, err)
}

// noteBound notes that a queue pair was bound. One that ended meanwhile or is
// bound already, and a port that is busy, are no errors: all queue pairs are
// looked at again.
func (p *boundPort) noteBound(qpn, set uint32, pod *Pod, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EBUSY):
		return nil
	case err != nil:
		return err
	}
	if p.bound == nil {
		p.bound, p.pods, p.sets = map[uint32]uint32{}, map[uint32]*Pod{}, map[podKey]uint32{}
	}
	p.bound[qpn], p.pods[set], p.sets[keyOf(pod)] = set, pod, set
	return nil
}

// prune forgets queue pairs and sets that are no more.
func (p *boundPort) prune(counters []rdmanl.QPCounter) {
	maps.DeleteFunc(p.bound, func(qpn, set uint32) bool {
		i := slices.IndexFunc(counters, func(c rdmanl.QPCounter) bool { return c.ID == set })
		return i < 0 || !slices.Contains(counters[i].QPNs, qpn)
	})
	isUsed := map[uint32]bool{}
	for _, set := range p.bound {
		isUsed[set] = true
	}
	maps.DeleteFunc(p.pods, func(set uint32, _ *Pod) bool { return !isUsed[set] })
	maps.DeleteFunc(p.sets, func(_ podKey, set uint32) bool { return !isUsed[set] })
}

// unbind takes all queue pairs from the sets that they were bound to.
func (p *boundPort) unbind(c *rdmanl.Client, port int) error {
	var errs []error
	for qpn, set := range p.bound {
		err := c.UnbindQP(p.index, port, qpn, set)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EINVAL) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func isBound(counters []rdmanl.QPCounter, qpn uint32) bool {
	return slices.ContainsFunc(counters, func(c rdmanl.QPCounter) bool { return slices.Contains(c.QPNs, qpn) })
}
