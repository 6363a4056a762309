package exporter

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/counters"
	"railhead/internal/inventory"
)

// continued is an exporter of a PF and a VF, that keeps what has wrapped.
type continued struct {
	*rig

	dir    string
	log    bytes.Buffer
	change func(*Config)
}

const (
	outOfBuffer = `rdma_out_of_buffer_total{device="mlx5_0"`
	setbacks    = `rdma_exporter_setbacks_total{device="mlx5_0"`
)

func newContinued(t *testing.T) *continued {
	t.Helper()
	c := &continued{dir: filepath.Join(t.TempDir(), "railhead")}
	c.change = func(config *Config) {
		reader, err := inventory.NewReader(config.Node)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = reader.Close() })
		config.Snapshots = inventory.NewWatcher(reader, inventory.Options{}) // which has none
		config.StateDir, config.Logger = c.dir, slog.New(slog.NewTextHandler(&c.log, nil))
	}
	c.rig = newRig(t, 1, 1, c.change)
	c.boot("11111111-0000-4000-8000-000000000000")
	return c
}

// boot is another boot of the machine.
func (c *continued) boot(id string) {
	c.t.Helper()
	dir := c.node.dir + "/proc/sys/kernel/random"
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(dir+"/boot_id", []byte(id+"\n"), 0o600)); err != nil {
		c.t.Fatal(err)
	}
}

// run begins and ends to run.
func (c *continued) run() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	cancel()
	if err := c.e.Run(ctx); !errors.Is(err, context.Canceled) {
		c.t.Fatal(err)
	}
}

// counts has every counter of the kernel be so much, and wants the PF to tell
// another number of one.
func (c *continued) counts(kernel uint64, want string) {
	c.t.Helper()
	c.node.counted.Store(kernel)
	c.sample(15 * time.Second)
	c.want(map[string]string{outOfBuffer: want})
}

// TestContinuity has a counter that has wrapped go on after a restart, and begin
// anew where nobody can know.
func TestContinuity(t *testing.T) {
	t.Parallel()
	const file = "counters.json"
	tests := []struct {
		name   string
		change func(c *continued, file string)
		kernel uint64
		want   string
		log    string // what the one line has; empty for no line
	}{
		{name: "a restart", kernel: 700_000_000, want: "4994967296"},
		{name: "a driver loaded anew", kernel: 5, want: "5"},
		{
			name: "another boot", kernel: 800_000_000, want: "800000000", log: "it is of boot",
			change: func(c *continued, _ string) { c.boot("22222222-0000-4000-8000-000000000000") },
		},
		{
			name: "a torn file", kernel: 800_000_000, want: "800000000", log: "unexpected end of JSON input",
			change: func(c *continued, file string) {
				if err := os.Truncate(file, 90); err != nil {
					c.t.Fatal(err)
				}
			},
		},
		{
			name: "a foreign file", kernel: 800_000_000, want: "800000000", log: "want more than last",
			change: func(c *continued, file string) {
				b := []byte(`{"boot_id":"11111111-0000-4000-8000-000000000000","functions":{"0000:17:00.0":[{"key":"x"}]}}`)
				if err := os.WriteFile(file, b, 0o600); err != nil {
					c.t.Fatal(err)
				}
			},
		},
		{
			name: "no file", kernel: 800_000_000, want: "800000000",
			change: func(c *continued, file string) {
				if err := os.Remove(file); err != nil {
					c.t.Fatal(err)
				}
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newContinued(t)
			file := filepath.Join(c.dir, file)
			c.counts(4_000_000_000, "4000000000")
			c.run()
			if _, err := os.Stat(c.dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("before anything has wrapped: %v, want no directory", err)
			}
			c.counts(600_000_000, "4894967296")
			c.run()
			if test.change != nil {
				test.change(c, file)
			}
			c.restart(c.change)
			c.run()
			c.counts(test.kernel, test.want)
			c.counts(test.kernel+1, test.want[:len(test.want)-1]+string(test.want[len(test.want)-1]+1))
			if lines := strings.Count(c.log.String(), "\n"); !strings.Contains(c.log.String(), test.log) || lines > 1 || lines == 0 && test.log != "" {
				t.Errorf("logged %q, want one line with %q, or none", c.log.String(), test.log)
			}
			c.e.narrow.save()
			if _, err := os.Stat(file); (err == nil) != (len(test.want) == 10) {
				t.Errorf("at the end: %v, want a file only while something is kept", err)
			}
		})
	}
}

// TestContinuityOfVF has a VF move to a pod and home again after its counter has
// wrapped. It is another device to the exporter each time.
func TestContinuityOfVF(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, 1, nil)
	const vf = `rdma_out_of_buffer_total{device="mlx5_3"`
	count := func(kernel uint64, want string) {
		t.Helper()
		r.node.counted.Store(kernel)
		r.sample(15 * time.Second)
		r.want(map[string]string{vf: want})
	}
	count(4_000_000_000, "4000000000")
	count(600_000_000, "4894967296")
	r.node.give(t, 1, 1, "a")
	r.changed()
	count(700_000_000, "4994967296")
	r.node.take(t, 1)
	r.changed()
	count(4_200_000_000, "8494967296") // more than half of what fits, while nobody read
	r.node.give(t, 1, 1, "b")
	r.changed()
	count(3_000, "3000") // its driver was loaded anew
}

// TestSlowDevice has a device that is replaced while it is read: what it reads
// at last must not take back what the one after it has come to.
func TestSlowDevice(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 0, nil)
	r.node.counted.Store(4_000_000_000)
	r.sample(15 * time.Second)
	old := r.e.nics[0].list()[0]
	r.node.counted.Store(600_000_000)
	r.sample(15 * time.Second)
	before := old.reader.Narrow(nil)
	next := newDevice(r.e, old.found.Load())
	old.reader.Continue([]counters.Narrow{{Key: "of the one before", Last: 1, Total: 2}})
	r.e.narrow.keep(old)
	if diff := cmp.Diff(before, r.e.narrow.functions[old.found.Load().ID].counters); diff != "" || next.reader.Narrow(nil) == nil {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// TestSaveAtTimes wants the file to be written when something has wrapped, once
// a minute at most.
func TestSaveAtTimes(t *testing.T) {
	t.Parallel()
	c := newContinued(t)
	c.e.narrow.load()
	file := filepath.Join(c.dir, "counters.json")
	expect := func(when string, want bool) {
		t.Helper()
		c.e.narrow.saveAtTimes(c.clock.now())
		if _, err := os.Stat(file); (err == nil) != want {
			t.Errorf("%s: %v, want the file: %v", when, err, want)
		}
		_ = os.Remove(file)
	}
	c.counts(4_000_000_000, "4000000000")
	expect("nothing has wrapped", false)
	c.counts(600_000_000, "4894967296")
	expect("it has wrapped", true)
	c.counts(600_000_001, "4894967297")
	expect("no news", false)
	c.counts(2_700_000_000, "6994967296")
	c.counts(4_100_000_000, "8394967296")
	c.counts(600_000_000, "9189934592")
	expect("it has wrapped again, a minute later", true)
	c.counts(2_700_000_000, "11289934592")
	c.counts(4_100_000_000, "12689934592")
	c.counts(600_000_000, "13484901888")
	expect("and again, too soon", false)
	c.clock.pass(15 * time.Second)
	expect("and a minute after the last time", true)
}

// TestUnwritable wants a directory that cannot be written to be told once, and
// to hinder nothing.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	c := newContinued(t)
	if err := os.WriteFile(c.dir, nil, 0o600); err != nil { // it is no directory
		t.Fatal(err)
	}
	c.e.narrow.load()
	c.counts(4_000_000_000, "4000000000")
	c.log.Reset()
	c.counts(600_000_000, "4894967296")
	for range 3 {
		c.clock.pass(time.Minute)
		c.e.narrow.saveAtTimes(c.clock.now())
	}
	if n := strings.Count(c.log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings, want 1: %s", n, c.log.String())
	}
	if !c.e.narrow.isChanged {
		t.Error("it is not tried again, though it may go later")
	}
	c.counts(600_000_001, "4894967297")
}

// TestSetbacks tells how often what a counter has counted is not known.
func TestSetbacks(t *testing.T) {
	t.Parallel()
	c := newContinued(t)
	c.counts(5_000, "5000")
	c.want(map[string]string{setbacks: ""})
	c.counts(10, "5000")
	c.want(map[string]string{setbacks: "2"}) // rx_write_requests too
}

// FuzzState wants a file that is taken to be the same when it is written again.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"boot_id":"b","functions":{"0000:17:00.0":[{"port":"1","source":"rdma statistic","key":"out_of_buffer","last":1,"total":4294967297}]}}`))
	f.Add([]byte(`{"boot_id":"b"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseState(b, "b")
		if err != nil {
			return
		}
		c := continuity{boot: "b", functions: map[string]*narrow{}}
		want := map[string][]counters.Narrow{}
		for id, list := range s.Functions {
			c.functions[id] = &narrow{counters: list}
			if len(list) > 0 {
				want[id] = list
			}
		}
		again, err := c.state()
		if err != nil {
			t.Fatal(err)
		}
		if again == nil {
			if len(want) > 0 {
				t.Fatalf("nothing of %v is written", want)
			}
			return
		}
		got, err := parseState(again, "b")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Functions); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
