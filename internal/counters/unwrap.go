package counters

// unwrap continues a counter that is narrower than 64 bits, so that it grows on
// where the kernel's begins again at zero. It begins with what the kernel has
// counted so far.
type unwrap struct {
	last, total uint64
	begun       bool
	resumes     bool // last and total are those of another Reader
}

// next takes what the kernel's counter is now, which is so many bits wide; 0 is
// 64, and such a counter is passed on as it is.
//
// Forward by less than half of what fits is growth. By more would be a rate
// that no card has, so the counter went back: somebody reset it, or the kernel
// was just moving what it counts of a queue pair. Nothing is added then, because
// nobody knows how much was counted.
func (u *unwrap) next(value uint64, bits uint8) (total uint64, wentBack bool) {
	if bits == 0 || !u.begun {
		*u = unwrap{last: value, total: value, begun: true}
		return u.total, false
	}
	mask := uint64(1)<<bits - 1
	if u.resumes {
		u.resume(value, mask)
		return u.total, false
	}
	grown := (value - u.last) & mask
	if grown <= mask/2 {
		u.total += grown
	}
	u.last = value
	return u.total, grown > mask/2
}

// resume takes the first value after a time in which nobody read, when the
// counter may have grown by any amount, and the driver may have been loaded
// anew. A counter that is not less than it was has grown by the difference. One
// that is less has wrapped if it is farther from zero than it was from the top,
// and else began anew, which is told as it is: whoever takes the total for a
// counter then adds no more than was counted, and never more than twice as much.
func (u *unwrap) resume(value, mask uint64) {
	grown, left := (value-u.last)&mask, -u.last&mask
	switch {
	case value >= u.last:
		u.total += value - u.last
	case value >= left && grown <= mask/2:
		u.total += grown
	default:
		u.total = value
	}
	u.last, u.resumes = value, false
}

// carries tells whether the total is another than the kernel's number.
func (u *unwrap) carries() bool { return u.total != u.last }
