//go:build linux

package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEdit(t *testing.T) {
	t.Parallel()
	e := edit{file: "a.c", find: "\treturn 0;\n", replace: "\tprepare();\n\treturn 0;\n"}
	tests := []struct{ name, text, want, err string }{
		{name: "once", text: "{\n\treturn 0;\n}\n", want: "{\n\tprepare();\n\treturn 0;\n}\n"},
		{name: "never", text: "{\n\treturn 1;\n}\n", err: "in a.c this text occurs 0 times"},
		{name: "twice", text: "\treturn 0;\n\treturn 0;\n", err: "in a.c this text occurs 2 times"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := e.apply(tt.text)
			if got != tt.want || (err == nil) != (tt.err == "") {
				t.Fatalf("got %q, %v; want %q", got, err, tt.want)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), e.find)) {
				t.Errorf("error %q, want %q and the text", err, tt.err)
			}
		})
	}
}

// The edits of one file must not be in each other's way, in whatever order they are made.
func TestRXEEditsAreIndependent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sources := map[string]string{}
	for _, e := range rxeEdits() {
		sources[e.file] += e.find + "\n"
	}
	for file, text := range sources {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := apply(dir, rxeEdits()); err != nil {
		t.Fatal(err)
	}
	for _, e := range rxeEdits() {
		raw, err := os.ReadFile(filepath.Join(dir, e.file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), e.replace) {
			t.Errorf("%s: another edit has changed what this one made:\n%s", e.file, e.replace)
		}
	}
}
