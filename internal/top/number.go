package top

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Unit is what throughput is shown in.
type Unit string

// The units of throughput.
const (
	Bits  Unit = "bit/s"
	Bytes Unit = "B/s"
)

// absent is what stands for a number that is not known.
const absent = "-"

// throughput writes bytes per second in a unit.
func (u Unit) throughput(r Rate) string {
	if u == Bits && r.isKnown {
		return scaled(known(r.value * 8))
	}
	return scaled(r)
}

// scaled writes a number with three figures and a decimal prefix, in five
// characters at most.
func scaled(r Rate) string {
	if !r.isKnown {
		return absent
	}
	value := r.value
	switch {
	case value == 0:
		return "0"
	case value < 0.01:
		return "<.01"
	}
	const prefixes = " kMGTPE"
	i := 0
	for ; value >= 999.5 && i < len(prefixes)-1; i++ {
		value /= 1000
	}
	digits := 2
	switch {
	case value >= 999.5:
		return ">999E"
	case value >= 99.95:
		digits = 0
	case value >= 9.995:
		digits = 1
	}
	text := strconv.FormatFloat(value, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return strings.TrimSpace(text + prefixes[i:i+1])
}

// percent writes a ratio, in four characters at most.
func percent(r Rate) string {
	switch {
	case !r.isKnown:
		return absent
	case r.value > 0 && r.value < 0.01:
		return "<1%"
	default:
		return fmt.Sprintf("%.0f%%", min(r.value*100, 999))
	}
}

// printable replaces what could move the cursor or change a colour: names come
// from the network, and a pod may have chosen them.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}
