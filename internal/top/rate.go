package top

import (
	"encoding/json"
	"math"
)

// Rate is a number that may be unknown: what a driver does not count, or what
// was not there at both ends of the time. Unknown is not zero.
type Rate struct {
	value   float64
	isKnown bool
}

// known makes a Rate of a number; one that is negative, infinite or not a
// number is unknown.
func known(value float64) Rate {
	if !(value >= 0) || math.IsInf(value, 0) {
		return Rate{}
	}
	return Rate{value: value, isKnown: true}
}

// Get returns the number, 0 where it is unknown.
func (r Rate) Get() (value float64, isKnown bool) { return r.value, r.isKnown }

// IsZero tells whether it is unknown, for the tag omitzero.
func (r Rate) IsZero() bool { return !r.isKnown }

// MarshalJSON writes the number, null where it is unknown.
func (r Rate) MarshalJSON() ([]byte, error) {
	if !r.isKnown {
		return []byte("null"), nil
	}
	return json.Marshal(r.value)
}

// isSome tells whether it is known to be more than zero.
func (r Rate) isSome() bool { return r.value > 0 }

// plus adds what is known.
func (r Rate) plus(other Rate) Rate {
	if !r.isKnown || !other.isKnown {
		return most(r, other)
	}
	return known(r.value + other.value)
}

// over divides; the quotient is unknown where one of both is, or the divisor 0.
func (r Rate) over(divisor Rate) Rate {
	if !r.isKnown || !divisor.isSome() {
		return Rate{}
	}
	return known(r.value / divisor.value)
}

// most returns the greatest that is known.
func most(rates ...Rate) Rate {
	var top Rate
	for _, r := range rates {
		if r.isKnown && (!top.isKnown || r.value > top.value) {
			top = r
		}
	}
	return top
}
