package archive_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/archive"
)

func ExampleWriter() {
	const card = "sys/devices/pci0000:16/0000:17:00.0"
	var w archive.Writer
	errs := []error{
		w.Comment("Server with a card.\n"),
		w.File("proc/cmdline", []byte("iommu=pt\n")),
		w.File("proc/1904/limits", []byte("Limit   Soft\nOpen    1024\n")),
		w.Link("sys/class/net/eth0", "../../devices/pci0000:16/0000:17:00.0/net/eth0"),
		w.File(card+"/vendor", []byte("0x15b3\n")),
		w.File(card+"/device", []byte("0x1021\n")),
		w.Link(card+"/driver", "../../../bus/pci/drivers/mlx5_core"),
		w.File(card+"/net/eth0/mtu", []byte("1500\n")),
		w.Dir("sys/class/infiniband"),
	}
	for _, err := range errs {
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Printf("%s", w.Bytes())
	// Output:
	// Server with a card.
	// -- proc/cmdline --
	// iommu=pt
	// -- proc/1904/limits --
	// Limit   Soft
	// Open    1024
	// -- sys/class/net/eth0 -> ../../devices/pci0000:16/0000:17:00.0/net/eth0 --
	// -- sys/devices/pci0000:16/0000:17:00.0/{} --
	// vendor: 0x15b3
	// device: 0x1021
	// driver -> ../../../bus/pci/drivers/mlx5_core
	// net/eth0/mtu: 1500
	// -- sys/class/infiniband/ --
}

func TestWriter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		add  func(w *archive.Writer) error
		want string
	}{
		{
			name: "nothing",
			add:  func(*archive.Writer) error { return nil },
			want: "",
		},
		{
			name: "file at the top",
			add:  func(w *archive.Writer) error { return w.File("a", []byte("x\n")) },
			want: "-- a --\nx\n",
		},
		{
			name: "empty file and empty line",
			add: func(w *archive.Writer) error {
				return first(w.File("some/directory/a", nil), w.File("some/directory/b", []byte("\n")), w.File("some/directory/c", []byte("\n")))
			},
			want: "-- some/directory/a --\n-- some/directory/{} --\nb:\nc:\n",
		},
		{
			name: "trailing blanks",
			add: func(w *archive.Writer) error {
				return first(w.File("some/directory/a", []byte("x \n")), w.File("some/directory/b", []byte(" \n")))
			},
			want: "-- some/directory/{} --\na: x \nb:  \n",
		},
		{
			name: "name with a colon and a space stays out of tables",
			add: func(w *archive.Writer) error {
				return first(w.File("some/directory/a: b", []byte("x\n")), w.File("some/directory/b", []byte("x\n")), w.File("some/directory/c", []byte("x\n")))
			},
			want: "-- some/directory/a: b --\nx\n-- some/directory/{} --\nb: x\nc: x\n",
		},
		{
			name: "directory that is no longer empty",
			add: func(w *archive.Writer) error {
				return first(w.Dir("a/b"), w.Dir("a/b"), w.File("a/b/c", []byte("x\n")))
			},
			want: "-- a/b/c --\nx\n",
		},
		{
			name: "tables where they are shorter",
			add: func(w *archive.Writer) error {
				var errs []error
				for _, name := range []string{"a", "b", "a/rather/long/path/c", "a/rather/long/path/d", "a/rather/long/path/e", "p/q"} {
					errs = append(errs, w.File("top/directory/of/all/"+name+"0", []byte("x\n")))
				}
				return first(errs...)
			},
			want: "-- top/directory/of/all/{} --\na0: x\nb0: x\np/q0: x\n-- top/directory/of/all/a/rather/long/path/{} --\nc0: x\nd0: x\ne0: x\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var w archive.Writer
			if err := tt.add(&w); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(w.Bytes())); diff != "" {
				t.Errorf("archive (-want +got):\n%s", diff)
			}
		})
	}
}

// first returns the first error there is.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestWriterRefuses(t *testing.T) {
	t.Parallel()
	file := func(name, text string) func(w *archive.Writer) error {
		return func(w *archive.Writer) error { return w.File(name, []byte(text)) }
	}
	link := func(name, target string) func(w *archive.Writer) error {
		return func(w *archive.Writer) error { return w.Link(name, target) }
	}
	tests := []struct {
		name string
		add  func(w *archive.Writer) error
		want []string // parts of the error
	}{
		{"binary file", file("a/b", "\x00\x01\n"), []string{`"a/b"`, "control"}},
		{"file that is not UTF-8", file("a/b", "\xff\n"), []string{`"a/b"`, "UTF-8"}},
		{"file with carriage returns", file("a/b", "x\r\n"), []string{`"a/b"`, "control"}},
		{"file without newline", file("a/b", "x"), []string{`"a/b"`, "newline"}},
		{"file with an entry in it", file("a/b", "x\n-- y --\nz\n"), []string{`"a/b"`, "-- NAME --"}},
		{"absolute file", file("/a", ""), []string{`"/a"`, "inside the tree"}},
		{"file above", file("../a", ""), []string{`"../a"`, "inside the tree"}},
		{"unclean file", file("a//b", ""), []string{`"a//b"`, "clean"}},
		{"the root", file(".", ""), []string{`"."`}},
		{"name of a table", file("a/{}", ""), []string{`"a/{}"`, "another form"}},
		{"name of a link", file("a -> b", ""), []string{`"a -> b"`, "another form"}},
		{"name that begins with a blank", file(" a", ""), []string{`" a"`, "another form"}},
		{"name with a newline", file("a\nb", ""), []string{`"a\nb"`, "printable"}},
		{"name that is not UTF-8", file("a\xff", ""), []string{`"a\xff"`, "UTF-8"}},
		{"long name", file(strings.Repeat("a", 256), ""), []string{"256 bytes"}},
		{"absolute link", link("a", "/etc"), []string{`"a"`, "/etc", "relative"}},
		{"link above", link("a/b", "../../c"), []string{`"a/b"`, "inside the tree"}},
		{"unclean link", link("a", "b/../c"), []string{`"a"`, "clean"}},
		{"link to a blank", link("a", "b "), []string{`"a"`, "another form"}},
		{"link that reads as a table", link("a", "b/{}"), []string{`"a"`, "another form"}},
		{"directory above", func(w *archive.Writer) error { return w.Dir("..") }, []string{`".."`, "inside the tree"}},
		{"file twice", file("there", ""), []string{`"there"`, "exists"}},
		{"file in place of a directory", file("dir", ""), []string{`"dir"`, "exists"}},
		{"directory in place of a file", func(w *archive.Writer) error { return w.Dir("there") }, []string{`"there"`, "exists"}},
		{"file below a file", file("there/a", ""), []string{`"there/a"`, "exists"}},
		{"file below a link", file("link/a/b", ""), []string{`"link/a/b"`, `"link"`}},
		{"comment with an entry in it", func(w *archive.Writer) error { return w.Comment("-- a --\n") }, []string{"comment", "-- NAME --"}},
		{"comment without newline", func(w *archive.Writer) error { return w.Comment("a") }, []string{"comment", "newline"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var w archive.Writer
			if err := first(w.Comment("x\n"), w.File("there", nil), w.Link("link", "dir"), w.Dir("dir")); err != nil {
				t.Fatal(err)
			}
			before := string(w.Bytes())
			err := tt.add(&w)
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
			if diff := cmp.Diff(before, string(w.Bytes())); diff != "" {
				t.Errorf("archive after the refusal (-before +after):\n%s", diff)
			}
		})
	}
}

// FuzzWriter: whatever a Writer does not refuse, Unpack gives back, and what
// it refuses it names. A script has an addition a line: a letter for its kind,
// the name and the text, in quotes as Go has them.
func FuzzWriter(f *testing.F) {
	f.Add(`f"a/b" "x\n"` + "\n" + `l"c" "a/b"` + "\n" + `d"e/f" ""` + "\n" + `f"a/c" "one\ntwo\n"`)
	f.Add(`f"a: b/c" "x\n"` + "\n" + `f"a/b -> c" "x\n"` + "\n" + `f"a/{}" "x\n"` + "\n" + `f"a/b:" ": \n"`)
	f.Add(`f"a/-- x" "y --\n"` + "\n" + `f"a/b/-- x" "y --\n"` + "\n" + `f"a/-- y" "y --\n"` + "\n" + `f"a/z" "-- y --\n"`)
	f.Add(`f"d/e/a" "x \n"` + "\n" + `f"d/e/b" " \n"` + "\n" + `f"d/e/c" "\n"` + "\n" + `f"d/e/d" "\n\n"` + "\n" + `f"d/e/e" ""`)
	f.Add(`l"a/b" "../c"` + "\n" + `l"a/c" "../d: e"` + "\n" + `l"a/d: e" "x -> y"` + "\n" + `f"a/b/c" ""` + "\n" + `d"a/b" ""`)
	f.Add(`d"a " ""` + "\n" + `d" a/b" ""` + "\n" + `f" a/b/c" "x\n"` + "\n" + `f" a/b/d" "x\n"` + "\n" + `f"a/b /c" "x\n"`)
	f.Add(`d"a -> b" ""` + "\n" + `f"a -> b/c" "x\n"` + "\n" + `f"{}/x" "y\n"` + "\n" + `f"{}/{}/z" "y\n"` + "\n" + `f"\u2028/\ufeff" "\u2028\n"`)
	f.Fuzz(func(t *testing.T, script string) {
		var w, again archive.Writer
		want := map[string]string{}
		for line := range strings.Lines(script) {
			add, ok := parseAddition(line)
			if !ok {
				continue
			}
			err := add.to(&w)
			if err2 := add.to(&again); fmt.Sprint(err) != fmt.Sprint(err2) {
				t.Fatalf("error %v, the second time %v", err, err2)
			}
			if err != nil {
				if !strings.Contains(err.Error(), strconv.Quote(add.name)) {
					t.Errorf("error %q does not name %q", err, add.name)
				}
				continue
			}
			add.note(want)
		}
		text := w.Bytes()
		if diff := cmp.Diff(string(text), string(again.Bytes())); diff != "" {
			t.Errorf("second archive (-first +second):\n%s", diff)
		}
		dir := t.TempDir()
		if err := archive.Unpack(text, dir); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := cmp.Diff(want, list(t, dir)); diff != "" {
			t.Errorf("tree (-want +got):\n%s\nof\n%s", diff, text)
		}
	})
}

// addition is a call of a Writer.
type addition struct {
	kind byte
	name string
	text string
}

func parseAddition(line string) (addition, bool) {
	if line == "" || !strings.ContainsRune("fld", rune(line[0])) {
		return addition{}, false
	}
	a := addition{kind: line[0]}
	quoted, err := strconv.QuotedPrefix(line[1:])
	if err != nil {
		return addition{}, false
	}
	a.name, _ = strconv.Unquote(quoted)
	quoted, err = strconv.QuotedPrefix(strings.TrimLeft(line[1+len(quoted):], " "))
	if err != nil {
		return addition{}, false
	}
	a.text, _ = strconv.Unquote(quoted)
	return a, true
}

func (a addition) to(w *archive.Writer) error {
	switch a.kind {
	case 'l':
		return w.Link(a.name, a.text)
	case 'd':
		return w.Dir(a.name)
	default:
		return w.File(a.name, []byte(a.text))
	}
}

// note notes what an addition makes, in the form of list.
func (a addition) note(tree map[string]string) {
	for p := path.Dir(a.name); p != "."; p = path.Dir(p) {
		tree[p+"/"] = ""
	}
	switch a.kind {
	case 'l':
		tree[a.name] = "-> " + a.text
	case 'd':
		tree[a.name+"/"] = ""
	default:
		tree[a.name] = a.text
	}
}

// TestWriterCheapest holds the layout of random trees against those in which
// every other choice of tables was made.
func TestWriterCheapest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		names := map[string]bool{}
		for range 1 + random.IntN(5) {
			dirs := []string{"t"}
			for range 1 + random.IntN(2) {
				dirs = append(dirs, strings.Repeat(string(rune('a'+random.IntN(2))), 1+random.IntN(9)))
			}
			names[path.Join(dirs...)+"/v"] = true
		}
		var w archive.Writer
		for name := range names {
			if err := w.File(name, []byte("x\n")); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := costOf(w.Bytes()), cheapest(names); got != want {
			t.Fatalf("the cost is %d, want %d:\n%s", got, want, w.Bytes())
		}
	}
}

// perStep is what the layout counts for a directory between a table and an item.
const perStep = 2

// costOf counts bytes, and the steps in the lines of tables.
func costOf(text []byte) int {
	cost := len(text)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "-- ") {
			cost += perStep * strings.Count(line, "/")
		}
	}
	return cost
}

// cheapest tries all sets of tables.
func cheapest(names map[string]bool) int {
	dirs := []string{}
	seen := map[string]bool{}
	for name := range names {
		for p := path.Dir(name); p != "."; p = path.Dir(p) {
			if !seen[p] {
				seen[p] = true
				dirs = append(dirs, p)
			}
		}
	}
	best := 1 << 30
	for set := range 1 << len(dirs) {
		tables := map[string]bool{}
		sum := 0
		for i, d := range dirs {
			if set>>i&1 == 1 {
				tables[d] = true
				sum += len("-- ") + len(d) + len("/{} --\n")
			}
		}
		for name := range names {
			sum += costBelow(name, tables)
		}
		best = min(best, sum)
	}
	return best
}

func costBelow(name string, tables map[string]bool) int {
	own := len("-- ") + len(name) + len(" --\n") + len("x\n")
	for p := path.Dir(name); p != "."; p = path.Dir(p) {
		if tables[p] {
			rel := name[len(p)+1:]
			return min(own, len(rel)+len(": x\n")+perStep*strings.Count(rel, "/"))
		}
	}
	return own
}
