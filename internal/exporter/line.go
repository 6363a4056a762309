package exporter

import (
	"math"
	"strconv"
	"unicode/utf8"

	"railhead/internal/counters"
)

// line is a series as it is written, all but its value.
type line struct {
	family *family
	labels string  // {device="mlx5_0",port="1"} and a blank
	scale  float64 // a value times this is in the unit of the family
	since  int64   // when it began to count, in Unix milliseconds; 0 where the kernel began
}

// row is a line with the value that it has.
type row struct {
	line  *line
	value uint64
}

// appendTo writes the line with a value, as both formats do, and in OpenMetrics
// since when it counts.
func (l *line) appendTo(b []byte, value uint64, isOpen bool) []byte {
	b = append(b, l.family.sample...)
	b = append(b, l.labels...)
	b = appendScaled(b, value, l.scale)
	b = append(b, '\n')
	if !isOpen || l.since == 0 || l.family.Kind != counters.Counter {
		return b
	}
	b = append(b, l.family.Name...)
	b = append(b, "_created"...)
	b = append(b, l.labels...)
	b = strconv.AppendFloat(b, float64(l.since)/1e3, 'f', -1, 64)
	return append(b, '\n')
}

// appendScaled writes a value times scale. A scale that is a part of one divides
// by a whole number: 15/1e6 is 1.5e-05, but 15*1e-6 is 1.4999999999999999e-05.
func appendScaled(b []byte, value uint64, scale float64) []byte {
	if whole := math.Round(scale); whole == scale && whole >= 1 {
		return strconv.AppendUint(b, value*uint64(whole), 10)
	}
	inverse := math.Round(1 / scale)
	if scale > 0 && math.Abs(inverse*scale-1) < 1e-9 {
		return strconv.AppendFloat(b, float64(value)/inverse, 'g', -1, 64)
	}
	return strconv.AppendFloat(b, float64(value)*scale, 'g', -1, 64)
}

// newLine renders a series of its own.
func newLine(f *family, labels []counters.Label, scale float64) *line {
	return &line{family: f, labels: texts(nil).of(labels), scale: scale}
}

// texts are labels as they are written. Series with the same labels share one,
// which is most of what a series takes. Nil shares nothing.
type texts map[string]string

// of writes labels and a blank.
func (t texts) of(labels []counters.Label) string {
	b := append(appendLabels(make([]byte, 0, 256), labels), ' ')
	if known, ok := t[string(b)]; ok {
		return known
	}
	text := string(b)
	if t != nil {
		t[text] = text
	}
	return text
}

// appendLabels writes labels in their order, without those that are empty.
func appendLabels(b []byte, labels []counters.Label) []byte {
	separator := byte('{')
	for _, label := range labels {
		if label.Value == "" {
			continue
		}
		b = append(b, separator)
		b = append(b, label.Name...)
		b = append(b, `="`...)
		b = appendEscaped(b, label.Value)
		b = append(b, '"')
		separator = ','
	}
	if separator == ',' {
		b = append(b, '}')
	}
	return b
}

// appendEscaped writes the value of a label. What is not UTF-8, which neither
// format allows, becomes U+FFFD.
func appendEscaped(b []byte, value string) []byte {
	for _, r := range value {
		switch r {
		case '\\':
			b = append(b, `\\`...)
		case '"':
			b = append(b, `\"`...)
		case '\n':
			b = append(b, `\n`...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}
