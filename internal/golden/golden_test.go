package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a test that fails without an end.
type recorder struct {
	testing.TB

	said string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

// compare returns what Equal says of got.
func compare(tb testing.TB, file, got string) (said string) {
	tb.Helper()
	r := &recorder{TB: tb}
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
		said = r.said
	}()
	Equal(r, file, got)
	return r.said
}

// TestEqual compares with a file that is not there, writes it, and compares
// with what is there.
func TestEqual(t *testing.T) {
	was := *update
	defer func() { *update = was }()
	*update = false
	file := filepath.Join(t.TempDir(), "new", "a.txt")
	if said := compare(t, file, "one\n"); !strings.Contains(said, "a.txt: no such file") || !strings.Contains(said, "-update") {
		t.Errorf("without a file: %q", said)
	}
	*update = true
	if said := compare(t, file, "one\n"); said != "" {
		t.Errorf("-update: %q", said)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "one\n" {
		t.Errorf("-update wrote %q, %v", text, err)
	}
	*update = false
	if said := compare(t, file, "one\n"); said != "" {
		t.Errorf("the same: %q", said)
	}
	if said := compare(t, file, "two\n"); !strings.Contains(said, "a.txt differs") || !strings.Contains(said, "-update") {
		t.Errorf("another text: %q", said)
	}
}
