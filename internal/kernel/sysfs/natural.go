package sysfs

import (
	"cmp"
	"strings"
)

// compareNatural orders names as people do, digits by their number: mlx5_2
// before mlx5_10. Names that differ in leading zeros only are in byte order.
func compareNatural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		numX, numY := digits(x), digits(y)
		if numX == "" || numY == "" {
			if c := cmp.Compare(x[0], y[0]); c != 0 {
				return c
			}
			x, y = x[1:], y[1:]
			continue
		}
		if c := compareDigits(numX, numY); c != 0 {
			return c
		}
		x, y = x[len(numX):], y[len(numY):]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// digits returns the digits that s begins with.
func digits(s string) string {
	return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
}

// compareDigits compares two numbers of any length.
func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
