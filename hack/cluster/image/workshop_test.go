package image

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The image of a binary from elsewhere needs neither packages nor a compiler, so that all of Build but these is tested
// by it.
func TestBuild(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "coredns")
	if err := os.WriteFile(binary, []byte("first"), 0o755); err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	c := Config{Cache: filepath.Join(t.TempDir(), "images"), CoreDNS: binary, Progress: &progress}
	build := func() Image {
		t.Helper()
		progress.Reset()
		images, err := Build(t.Context(), c, CoreDNS)
		if err != nil {
			t.Fatal(err)
		}
		return images[0]
	}
	first := build()
	if !strings.Contains(progress.String(), "making "+CoreDNS) || first.Name != CoreDNS {
		t.Errorf("made %+v, progress %q", first, progress.String())
	}
	if again := build(); again.Path != first.Path || progress.Len() > 0 {
		t.Errorf("made again: %+v, progress %q", again, progress.String())
	}
	if err := os.WriteFile(binary, []byte("second"), 0o755); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * unusedFor)
	if err := os.Chtimes(first.Path, old, old); err != nil {
		t.Fatal(err)
	}
	if other := build(); other.Path == first.Path {
		t.Errorf("another binary made the same image: %+v", other)
	}
	if _, err := os.Stat(first.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the unused archive: %v", err)
	}
}

func TestBuildTellsAllThatFailed(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "coredns")
	if err := os.WriteFile(binary, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	images, err := Build(t.Context(), Config{Cache: t.TempDir(), CoreDNS: binary}, "nginx", CoreDNS, "redis")
	if len(images) != 1 || err == nil || !strings.Contains(err.Error(), "nginx") || !strings.Contains(err.Error(), "redis") {
		t.Errorf("images %+v, error %v", images, err)
	}
	if _, err := Build(t.Context(), Config{Cache: t.TempDir()}, CoreDNS); err == nil {
		t.Error("an image of no binary")
	}
	if _, err := Build(t.Context(), Config{Cache: "images"}); err == nil {
		t.Error("a relative cache")
	}
}
