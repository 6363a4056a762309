package picture

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Render lets Chromium make a PNG of a page and returns it with few colours, so
// that it is small.
func Render(ctx context.Context, chromium, page string, height int) (_ []byte, err error) {
	dir, err := os.MkdirTemp("", "railhead-picture-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file, shot := filepath.Join(dir, "page.html"), filepath.Join(dir, "page.png")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, chromium,
		"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--user-data-dir="+filepath.Join(dir, "profile"),
		fmt.Sprintf("--window-size=%d,%d", pageWidth, height), "--screenshot="+shot, "file://"+file)
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", chromium, err, bytes.TrimSpace(said))
	}
	text, err := os.ReadFile(shot)
	if err != nil {
		return nil, err
	}
	return shrink(text)
}

// shrink gives a PNG the colours that it has most of: a picture of a page has
// few, and many shades at the edges of letters and lines.
func shrink(text []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	bounds := full.Bounds()
	small := image.NewPaletted(bounds, frequent(full))
	nearest := map[color.Color]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := full.At(x, y)
			index, ok := nearest[c]
			if !ok {
				index = uint8(small.Palette.Index(c))
				nearest[c] = index
			}
			small.SetColorIndex(x, y, index)
		}
	}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&b, small)
	return b.Bytes(), err
}

// paletteSize leaves shades of letters to their neighbours.
const paletteSize = 160

// frequent returns the colours of lines, which may be few pixels, and those that
// a picture has most of.
func frequent(full image.Image) color.Palette {
	counts := map[color.Color]int{}
	bounds := full.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[full.At(x, y)]++
		}
	}
	palette := make(color.Palette, 0, len(counts))
	for c := range counts {
		palette = append(palette, c)
	}
	slices.SortFunc(palette, func(a, b color.Color) int { return cmp.Compare(counts[b], counts[a]) })
	return append(lineColors(), palette[:min(len(palette), paletteSize)]...)
}
