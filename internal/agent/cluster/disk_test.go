package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
)

// empty is a Cache that knows nothing.
func empty(tb testing.TB) *Cache {
	tb.Helper()
	c, err := New(Config{API: away().Config(), Node: "n1"})
	if err != nil {
		tb.Fatal(err)
	}
	c.queue.ShutDown() // nobody asks the API server
	return c
}

// linesOf are what would be kept of a Cache.
func linesOf(t *testing.T, c *Cache) []string {
	t.Helper()
	var out bytes.Buffer
	if err := encodeParts(&out, heading{Version: diskVersion, Node: "n1"}, c.parts()); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(strings.Lines(out.String()))
}

// take has a Cache take what is kept before the last line.
func take(c *Cache, body string) error {
	text := summed(body)
	_, err := takeParts(bytes.NewReader(text), int64(len(text)), c.isOurs, c.parts())
	return err
}

// TestTake wants any text to be taken whole or not at all, and what was taken to be
// the same once it was kept again.
func TestTake(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"version":1,"node":"n1","at":"2026-01-01T00:00:00Z","kinds":["Namespaces","Pods of this node","Above controllers","SpiderIPPools"]}
{"kind":0,"object":{"name":"ai","labels":{"team":"a"}}}
{"kind":1,"object":{"metadata":{"name":"a-0","namespace":"ai","uid":"u"}}}
{"kind":2,"object":{"uid":"x","applications":[{"Kind":"Deployment","Name":"web"}]}}
{"kind":3,"object":{"metadata":{"name":"p"},"spec":{"subnet":"10.0.0.0/24","ips":["10.0.0.1-10.0.0.9"],"podAffinity":{"matchLabels":{"a":"b"}}}}}
`,
		`{"version":1,"node":"n1","kinds":["NetworkAttachmentDefinitions","SpiderCoordinators","SpiderReservedIPs","Node n1","ConfigMap railhead-system/spiderpool-conf","unknown"]}
{"kind":0,"object":{"metadata":{"name":"rail0","namespace":"ai"},"spec":{"config":"{}"}}}
{"kind":1,"object":{"metadata":{"name":"default"},"spec":{"mode":"auto"}}}
{"kind":2,"object":{"metadata":{"name":"r"},"spec":{"ips":["10.0.0.1"]}}}
{"kind":3,"object":{"metadata":{"name":"n1"},"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}}}
{"kind":4,"object":{"metadata":{"name":"spiderpool-conf","namespace":"railhead-system"},"data":{"conf.yml":"enableIPv6: false"}}}
{"kind":5,"object":7}
`,
		`{"version":1,"node":"n1","kinds":["Namespaces"]}{"kind":1,"object":{}}`, `{"version":1,"node":"n1","kinds":["Namespaces"]}]`, `{"version":2}`,
		`{"version":1,"node":"n1","kinds":["Namespaces"]}{"kind":0,"object":{"name":"ai"}}{"kind":0,"object":{}}`, `{"version":1,"node":"n2"}`, "", "{",
	} {
		first, second := empty(t), empty(t)
		nothing := linesOf(t, second)
		if err := take(first, text); err != nil {
			if now := linesOf(t, first); !slices.Equal(now, nothing) {
				t.Errorf("error %v, and this was taken: %q", err, now)
			}
			continue
		}
		var again bytes.Buffer
		if err := encodeParts(&again, heading{Version: diskVersion, Node: "n1"}, first.parts()); err != nil {
			t.Fatal(err)
		}
		if err := take(second, again.String()); err != nil {
			t.Fatal(err)
		}
		if a, b := linesOf(t, first), linesOf(t, second); !slices.Equal(a, b) || slices.Equal(a, nothing) {
			t.Errorf("it was\n%q\nand is\n%q", a, b)
		}
	}
}

// TestTwoWrite wants what one agent has half written to be left alone by another one
// that begins, and to go once nobody writes any more.
func TestTwoWrite(t *testing.T) {
	t.Parallel()
	dir := keptOfFull(t)
	written, err := lockDirectory(dir, unix.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, "."+diskFile+"4711")
	if err := os.WriteFile(half, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := full()
	living(t, a, dir, func(*Cache) {
		after(askFor + keepEvery)
		if _, err := os.Stat(half); err != nil {
			t.Errorf("what another agent writes: %v", err)
		}
		if err := written(); err != nil {
			t.Fatal(err)
		}
		a.set(podsPath, podOf("n1", "new", "new", nil))
		after(2 * keepEvery)
		if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what nobody writes any more: %v, want it to be gone", err)
		}
		if text := readKept(t, dir); !bytes.Contains(text, []byte(`"new"`)) {
			t.Error("what came meanwhile is not kept")
		}
	})
}

// TestManyWrite has several write at once while others clean: nobody takes from another
// what that is writing.
func TestManyWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, diskFile)
	n := names{all: []string{"a", "b"}, isDone: true}
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 100 {
				if err := writeParts(path, heading{Version: diskVersion}, []part{n.part("names")}); err != nil {
					t.Errorf("it was not written: %v", err)
				}
				(&Cache{disk: newDisk(dir), log: slog.New(slog.DiscardHandler)}).clean()
			}
		})
	}
	writers.Wait()
	(&Cache{disk: newDisk(dir), log: slog.New(slog.DiscardHandler)}).clean()
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("files %v, error %v, want one", files, err)
	}
}

// TestDiskFull fills the disk: it is told with file and reason, what was kept before
// stays as it was, nothing half written is left, and with room again all is kept.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		dir := kerneltest.SmallDisk(t)
		a := full()
		var was []byte
		log := living(t, a, dir, func(c *Cache) {
			after(askFor + keepAfter)
			was = readKept(t, dir)
			free := kerneltest.FillDisk(t, dir)
			for i := range 5 {
				a.set(podsPath, podOf("n1", fmt.Sprintf("p%d", i), fmt.Sprintf("p%d", i), nil))
				after(keepAgain)
				wantAll(t, a, c)
			}
			if now := readKept(t, dir); !bytes.Equal(now, was) {
				t.Errorf("on a full disk it is %q, want what it was", now)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
				t.Errorf("files %v, error %v, want two", files, err)
			}
			other := empty(t)
			if _, err := readParts(filepath.Join(dir, diskFile), other.isOurs, other.parts()); err != nil {
				t.Errorf("what was kept before: %v", err)
			}
			free()
			after(2 * keepAgain)
			if text := readKept(t, dir); !bytes.Contains(text, []byte(`"p4"`)) {
				t.Error("with room again, what came is not kept")
			}
		})
		for word, n := range map[string]int{"cannot be kept": 1, "is kept on the node again": 1, dir + "/." + diskFile: 1, unix.ENOSPC.Error(): 1} {
			if told := strings.Count(log, word); told != n {
				t.Errorf("%q is told %d times, want %d:\n%s", word, told, n, log)
			}
		}
	})
}

// names are a part that keeps names.
type names struct {
	all    []string
	isDone bool
}

func (n *names) part(title string) part {
	type named struct {
		Name string `json:"name"`
	}
	return part{
		title: title, isKnown: func() bool { return n.isDone }, done: func() { n.isDone = true },
		each: func(tell func(any) error) (err error) {
			for _, name := range n.all {
				err = errors.Join(err, tell(named{name}))
			}
			return err
		},
		parse: func(text []byte) (func(), error) {
			var o named
			err := json.Unmarshal(text, &o)
			return func() { n.all = append(n.all, o.Name) }, err
		},
	}
}

// FuzzRead is TestTake with parts that do nothing in the background, as fuzzing needs.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`{"version":1,"node":"n1","kinds":["a","c","b"]}{"kind":0,"object":{"name":"x"}}{"kind":1,"object":7}{"kind":2,"object":{"name":"y"}}`,
		`{"version":1,"kinds":["a"]}{"kind":0,"object":{"name":"x"}}{"kind":0,"object":7}`, `{"version":1,"kinds":["a","a"]}{"kind":1,"object":{}}`,
		`{"version":1,"kinds":["b"]}`, `{"version":1,"kinds":["b"]}{"kind":-1}`, `{"version":1}]`, `{"version":2}`, "", "{",
	} {
		f.Add(text)
	}
	read := func(body string) (a, b names, err error) {
		text := summed(body)
		_, err = takeParts(bytes.NewReader(text), int64(len(text)), func(heading) error { return nil }, []part{a.part("a"), b.part("b")})
		return a, b, err
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, b, err := read(text)
		if err != nil {
			if len(a.all)+len(b.all) > 0 || a.isDone || b.isDone {
				t.Fatalf("error %v, and this was taken: %+v, %+v", err, a, b)
			}
			return
		}
		var again bytes.Buffer
		if err := encodeParts(&again, heading{Version: diskVersion}, []part{a.part("a"), b.part("b")}); err != nil {
			t.Fatal(err)
		}
		a2, b2, err := read(again.String())
		if err != nil || !slices.Equal(a.all, a2.all) || !slices.Equal(b.all, b2.all) || a.isDone != a2.isDone || b.isDone != b2.isDone {
			t.Errorf("it was %+v, %+v and is %+v, %+v: %v", a, b, a2, b2, err)
		}
	})
}

// largest is a Cache that knows 10,000 pools, 1,000 networks and 250 pods.
func largest(b *testing.B, dir string) *Cache {
	b.Helper()
	c, err := New(Config{API: large(10000).Config(), Node: "n1", Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	for c.Ready() != nil {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	return c
}

// BenchmarkDisk keeps what a node of the largest cluster knows, and begins with that.
func BenchmarkDisk(b *testing.B) {
	dir := b.TempDir()
	kept := largest(b, dir)
	b.Run("keep", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !kept.write() {
				b.Fatal("it was not written")
			}
		}
		there, err := os.Stat(filepath.Join(dir, diskFile))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(there.Size()), "bytes")
	})
	b.Run("recall", func(b *testing.B) {
		if !kept.write() {
			b.Fatal("it was not written")
		}
		b.ReportAllocs()
		for b.Loop() {
			c := empty(b)
			if _, err := readParts(filepath.Join(dir, diskFile), c.isOurs, c.parts()); err != nil || len(c.Catalog().Pools()) != 10001 {
				b.Fatal(err)
			}
		}
	})
}
