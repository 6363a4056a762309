package inventory

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"railhead/internal/golden"
	"railhead/internal/kernel/kerneltest"
)

// machines returns the names of the archives of machines.
func machines(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob("testdata/machines/*.txtar")
	if err != nil || len(files) == 0 {
		tb.Fatalf("%d archives of machines: %v", len(files), err)
	}
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".txtar"))
	}
	return names
}

// machineText has the facts of machines as JSON: to unpack an archive takes
// longer than the tests of it.
var machineText = struct {
	mu    sync.Mutex
	facts map[string][]byte
}{facts: map[string][]byte{}}

// machineFacts returns what the archive of a machine says, for the caller alone.
func machineFacts(tb testing.TB, name string) *Facts {
	tb.Helper()
	machineText.mu.Lock()
	defer machineText.mu.Unlock()
	text, ok := machineText.facts[name]
	if !ok {
		r, err := NewArchiveReader(kerneltest.Tree(tb, "testdata/machines/"+name+".txtar"))
		if err != nil {
			tb.Fatal(err)
		}
		facts := r.Read(nil, Changes{})
		if len(facts.Problems) != 0 {
			tb.Fatalf("%s has problems: %v", name, facts.Problems)
		}
		text = encode(tb, facts)
		machineText.facts[name] = text
	}
	facts := new(Facts)
	if err := json.Unmarshal(text, facts); err != nil {
		tb.Fatal(err)
	}
	return facts
}

func TestJoinMachines(t *testing.T) {
	t.Parallel()
	for _, name := range machines(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Join(machineFacts(t, name), Options{})
			got, err := json.MarshalIndent(s, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, filepath.Join("testdata", "golden", name+".json"), append(got, '\n'))
		})
	}
}
