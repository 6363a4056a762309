package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/hack/dashboards/boards"
	"railhead/hack/dashboards/lab"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value float64
		unit  string
		want  string
	}{
		{0.285, "percentunit", "28.5%"},
		{400e9, "bps", "400 Gb/s"},
		{50e9, "Bps", "50 GB/s"},
		{16 << 30, "bytes", "16 GiB"},
		{1500, "pps", "1.5 kp/s"},
		{0.022, "ops", "0.022 /s"},
		{8, "hex0x", "0x8"},
		{4200, "short", "4200"},
		{0, "bps", "0 b/s"},
	}
	for _, tt := range tests {
		if got := format(tt.value, tt.unit); got != tt.want {
			t.Errorf("%g as %s is %q, want %q", tt.value, tt.unit, got, tt.want)
		}
	}
}

func series(value float64, pairs ...string) lab.Series {
	s := lab.Series{Labels: map[string]string{}, Points: []lab.Point{{Value: value}}}
	for i := 0; i < len(pairs); i += 2 {
		s.Labels[pairs[i]] = pairs[i+1]
	}
	return s
}

// TestMerge joins answers that share the device, of which one has a label more
// and one knows a device less.
func TestMerge(t *testing.T) {
	t.Parallel()
	p := boards.Panel{Columns: []boards.Column{{Label: "device"}, {Label: "mode"}, {Value: "A", Unit: "Bps"}, {Value: "B"}}}
	got := merge(&p, [][]lab.Series{
		{series(2e9, "device", "b"), series(1e9, "device", "a")},
		{series(7, "device", "a", "mode", "<dscp>")},
	})
	want := [][]string{
		{"<td>a</td>", "<td>&lt;dscp&gt;</td>", "<td>1 GB/s</td>", "<td>7</td>"},
		{"<td>b</td>", "<td></td>", "<td>2 GB/s</td>", "<td></td>"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTrace wants a gap where there is no value.
func TestTrace(t *testing.T) {
	t.Parallel()
	line, area := trace([]float64{0, 1, math.NaN(), 2}, 2, box{width: axis + 31, height: 44})
	if got, want := line, "M62.0 26.0L72.0 16.0M92.0 6.0"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
	if n := strings.Count(area, "Z"); n != 2 {
		t.Errorf("area %q has %d parts, want 2", area, n)
	}
}

func TestStack(t *testing.T) {
	t.Parallel()
	all := []curve{{values: []float64{1, 2}}, {values: []float64{math.NaN(), 3}}, {values: []float64{5, 7}}}
	stack(all)
	want := []curve{{values: []float64{1, 2}}, {values: []float64{1, 5}}, {values: []float64{6, 12}}}
	if diff := cmp.Diff(want, all, cmp.AllowUnexported(curve{})); diff != "" {
		t.Error(diff)
	}
}

// TestShrink keeps the size of a picture and the colours of lines, however few
// their pixels.
func TestShrink(t *testing.T) {
	t.Parallel()
	full := image.NewRGBA(image.Rect(0, 0, 40, 30))
	for y := range 30 {
		for x := range 40 {
			full.Set(x, y, color.RGBA{R: uint8(x), G: uint8(y), B: 20, A: 255})
		}
	}
	full.Set(3, 4, lineColors()[5])
	var b bytes.Buffer
	if err := png.Encode(&b, full); err != nil {
		t.Fatal(err)
	}
	text, err := shrink(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	small, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if small.Bounds() != full.Bounds() || color.RGBAModel.Convert(small.At(3, 4)) != lineColors()[5] {
		t.Errorf("picture %v with %v where the line is", small.Bounds(), small.At(3, 4))
	}
	if _, err := shrink([]byte("no picture")); err == nil {
		t.Error("what is no picture was taken")
	}
}
