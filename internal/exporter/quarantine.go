package exporter

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"railhead/internal/counters"
)

// A question to a device that fails failuresMost times in a row is left alone
// for quarantineFirst, and for twice as long each time that it fails again,
// up to quarantineMost. Reading on would fill the kernel's log and keep a sick
// firmware busy.
const (
	failuresMost    = 3
	quarantineFirst = 30 * time.Second
	quarantineMost  = 10 * time.Minute
)

// quarantine is what is left alone of a device. The zero value is nothing.
type quarantine struct {
	sentences map[offender]*sentence
}

// offender is what fails in a tier: a question to a source, or the device
// itself, which blocks.
type offender struct {
	source   string // empty for the device itself
	question string // as counters.ReadError has it; empty for the whole source
	tier     counters.Tier
}

type sentence struct {
	failures int
	reason   string
	pause    time.Duration
	until    time.Time // zero while it is read
}

// holds tells whether an offender is to be left alone now.
func (q *quarantine) holds(o offender, now time.Time) bool {
	s := q.sentences[o]
	return s != nil && now.Before(s.until)
}

// isAny tells whether anything is left alone in a tier now.
func (q *quarantine) isAny(tier counters.Tier, now time.Time) bool {
	for o := range q.sentences {
		if o.tier == tier && q.holds(o, now) {
			return true
		}
	}
	return false
}

// failed notes a failure. It returns for how long the offender is left alone
// from now, which is zero if it is not.
func (q *quarantine) failed(o offender, err error, now time.Time) time.Duration {
	if q.sentences == nil {
		q.sentences = map[offender]*sentence{}
	}
	s := q.sentences[o]
	if s == nil {
		s = &sentence{}
		q.sentences[o] = s
	}
	s.failures++
	s.reason = reasonOf(err)
	if s.failures < failuresMost && !isGrave(err) {
		return 0
	}
	s.pause = min(max(2*s.pause, quarantineFirst), quarantineMost)
	s.until = now.Add(s.pause)
	return s.pause
}

// worked forgets what an offender did, and tells whether it had been left
// alone.
func (q *quarantine) worked(o offender) bool {
	s := q.sentences[o]
	delete(q.sentences, o)
	return s != nil && !s.until.IsZero()
}

// reasons returns why the device, or a part of it, is left alone now, in order
// and each once.
func (q *quarantine) reasons() []string {
	var reasons []string
	for _, s := range q.sentences {
		if !s.until.IsZero() {
			reasons = append(reasons, s.reason)
		}
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}

// errBlocked is what is wrong with a device that did not answer in time.
var errBlocked = errors.New("it did not answer in time")

// isGrave tells whether an error says that a device is sick, and not only that
// it was asked wrongly or at the wrong moment.
func isGrave(err error) bool {
	for _, errno := range []syscall.Errno{unix.EIO, unix.EREMOTEIO, unix.ETIMEDOUT} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return errors.Is(err, errBlocked)
}

// reasonOf is an error in one word: EIO, or the like where there is no number.
func reasonOf(err error) string {
	if errors.Is(err, errBlocked) {
		return "blocked"
	}
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return "other"
	}
	if name := unix.ErrnoName(errno); name != "" {
		return name
	}
	return fmt.Sprintf("errno %d", int(errno))
}
