package picture

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"railhead/hack/dashboards/grafana"
)

// format writes a value in a unit, as Grafana calls the units.
func format(v float64, unit string) string {
	switch unit {
	case "percentunit":
		return short(v*100) + "%"
	case "bps":
		return scaled(v, 1000, "b/s", "", "k", "M", "G", "T")
	case "Bps":
		return scaled(v, 1000, "B/s", "", "k", "M", "G", "T")
	case "bytes":
		return scaled(v, 1024, "B", "", "Ki", "Mi", "Gi", "Ti")
	case "pps":
		return scaled(v, 1000, "p/s", "", "k", "M", "G")
	case "ops":
		return scaled(v, 1000, "/s", "", "k", "M", "G")
	case "s":
		return short(v) + " s"
	case "hex0x":
		return fmt.Sprintf("0x%x", int64(v))
	default:
		return short(v)
	}
}

func scaled(v, base float64, unit string, prefixes ...string) string {
	i := 0
	for math.Abs(v) >= base && i < len(prefixes)-1 {
		v /= base
		i++
	}
	return short(v) + " " + prefixes[i] + unit
}

// short writes a number with three digits.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 100 || a == math.Trunc(a):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
}

// colorOf is the colour of a value by steps.
func colorOf(v float64, steps []grafana.Step) string {
	color := "#5794f2"
	for _, s := range steps {
		if s.Value == nil || v >= *s.Value {
			color = named(s.Color)
		}
	}
	return color
}

// named is the colour that Grafana's dark theme has for a name.
func named(color string) string {
	switch color {
	case "green":
		return "#73bf69"
	case "yellow":
		return "#fade2a"
	case "orange":
		return "#ff9830"
	case "red":
		return "#f2495c"
	case "blue":
		return "#5794f2"
	}
	return color
}

// lineColor is the colour of the nth line of a panel.
func lineColor(n int) string {
	c := lineColors()
	r, g, b, _ := c[n%len(c)].RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

// lineColors are the first of Grafana's classic palette.
func lineColors() color.Palette {
	var all color.Palette
	for _, c := range []uint32{
		0x7eb26d, 0xeab839, 0x6ed0e0, 0xef843c, 0xe24d42, 0x1f78c1, 0xba43a9, 0x705da0,
		0x508642, 0xcca300, 0x447ebc, 0xc15c17, 0x890f02, 0x0a437c, 0x6d1f62, 0x584477,
	} {
		all = append(all, color.RGBA{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: 255})
	}
	return all
}
