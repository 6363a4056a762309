package simulation

import "time"

// forever is later than any moment of a scenario.
const forever = time.Duration(1<<63 - 1)

// schedule says in which times something is. Times are since the start of the
// scenario.
type schedule struct {
	from  time.Duration
	last  time.Duration // how long a time is; 0 without end
	every time.Duration // 0 for once
}

func (w When) schedule() schedule {
	return schedule{from: w.From.Duration, last: w.For.Duration, every: w.Every.Duration}
}

// turn returns how many times there were up to t, the present one included,
// and whether t is within one.
func (s schedule) turn(t time.Duration) (count int, active bool) {
	if t < s.from {
		return 0, false
	}
	if s.every == 0 {
		return 1, s.last == 0 || t < s.from+s.last
	}
	since := t - s.from
	return int(since/s.every) + 1, since%s.every < s.last
}

// begin returns when the time with a number, from 0, begins, and end when it
// ends.
func (s schedule) begin(number int) time.Duration { return s.from + time.Duration(number)*s.every }

func (s schedule) end(number int) time.Duration {
	if s.last == 0 {
		return forever
	}
	return s.begin(number) + s.last
}

// next returns the first moment after t at which something begins or ends.
func (s schedule) next(t time.Duration) time.Duration {
	count, active := s.turn(t)
	switch {
	case active:
		return s.end(count - 1)
	case count > 0 && s.every == 0:
		return forever
	}
	return s.begin(count)
}

// nested is a schedule within the times of another.
type nested struct {
	outer schedule
	inner schedule // its times are since the beginning of the outer's
}

// turn returns how many inner times there were up to t, and whether t is within
// one. An inner time ends with its outer one at the latest.
func (n nested) turn(t time.Duration) (count int, active bool) {
	turns, isWithin := n.outer.turn(t)
	if turns == 0 {
		return 0, false
	}
	since := t - n.outer.begin(turns-1)
	if !isWithin {
		since = n.outer.last - 1
	}
	here, isNow := n.inner.turn(since)
	before := 0
	if turns > 1 {
		each, _ := n.inner.turn(n.outer.last - 1)
		before = (turns - 1) * each
	}
	return before + here, isWithin && isNow
}

// next returns the first moment after t at which an inner or outer time begins
// or ends, or an earlier one.
func (n nested) next(t time.Duration) time.Duration {
	after := n.outer.next(t)
	turns, isWithin := n.outer.turn(t)
	if !isWithin {
		return after
	}
	begin := n.outer.begin(turns - 1)
	if inner := n.inner.next(t - begin); inner < forever-begin {
		return min(after, begin+inner)
	}
	return after
}
