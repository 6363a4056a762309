package simulation

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a time in a scenario, written as Go does: 90s, 1h30m.
type Duration struct {
	time.Duration

	refused string // what was written, where that is no duration
}

// Quantity is a number in a scenario, which may end in k, M, G, T (powers of
// 1000) or Ki, Mi, Gi, Ti (powers of 1024).
type Quantity struct {
	Value   float64
	refused string // what was written, where that is no quantity
}

// UnmarshalJSON takes what is no duration too: only [Load] knows where in the
// scenario that is.
func (d *Duration) UnmarshalJSON(b []byte) error {
	text := scalar(b)
	if parsed, err := time.ParseDuration(text); err == nil && parsed >= 0 {
		d.Duration = parsed
	} else {
		d.refused = text
	}
	return nil
}

// UnmarshalJSON takes what is no quantity too, as that of [Duration] does.
func (q *Quantity) UnmarshalJSON(b []byte) error {
	text := scalar(b)
	if v, ok := parseQuantity(text); ok {
		q.Value = v
	} else {
		q.refused = text
	}
	return nil
}

// MarshalJSON writes a duration as it is read.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// MarshalJSON writes a quantity as a number.
func (q Quantity) MarshalJSON() ([]byte, error) { return json.Marshal(q.Value) }

func (d Duration) invalid() string {
	if d.refused == "" {
		return ""
	}
	return fmt.Sprintf("%.64q, want a duration such as 90s", d.refused)
}

func (q Quantity) invalid() string {
	if q.refused == "" {
		return ""
	}
	return fmt.Sprintf("%.64q, want a number, which may end in k, M, G, T, Ki, Mi, Gi or Ti", q.refused)
}

// scalar returns the text of a JSON string, or JSON as it is.
func scalar(b []byte) string {
	var text string
	if err := json.Unmarshal(b, &text); err == nil {
		return text
	}
	return string(b)
}

// largest bounds quantities so that no counter of 64 bits overflows in a year.
const largest = 1e15

func parseQuantity(s string) (float64, bool) {
	digits := strings.TrimRight(s, "kKMGTi")
	unit, ok := unitOf(s[len(digits):])
	v, err := strconv.ParseFloat(digits, 64)
	return v * unit, ok && err == nil && v >= 0 && v*unit <= largest // which NaN is not
}

func unitOf(suffix string) (float64, bool) {
	switch suffix {
	case "":
		return 1, true
	case "k":
		return 1e3, true
	case "M":
		return 1e6, true
	case "G":
		return 1e9, true
	case "T":
		return 1e12, true
	case "Ki":
		return 1 << 10, true
	case "Mi":
		return 1 << 20, true
	case "Gi":
		return 1 << 30, true
	case "Ti":
		return 1 << 40, true
	}
	return 0, false
}
