package exporter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"railhead/internal/counters"
	"railhead/internal/kernel/sysfs"
)

// continuity keeps what counters that are narrower than 64 bits in the kernel
// have come to, by function: also while that moves from one pod to the next and
// so is another device to the exporter, and in a file until the next start, as
// far as that is of the same boot. Without it a series that had wrapped would
// fall to what the kernel shows, which is a reset and then a jump to who reads
// it.
//
// Mostly nothing has wrapped, and then there is no file.
type continuity struct {
	logger *slog.Logger
	fs     sysfs.FS
	path   string // of the file; empty for none
	boot   string // the kernel's ID of this boot

	// Used by the one that saves.
	saved     time.Time // when it was tried last, but for the end
	isFailing bool      // it could not be written

	mu        sync.Mutex
	functions map[string]*narrow // by inventory.Device.ID
	isChanged bool               // since it was saved
}

// narrow is what the counters of a function have come to.
type narrow struct {
	by       *device // that is sampled now
	counters []counters.Narrow
}

// stateName is the file in Config.StateDir, saveEvery how often it is written at
// most.
const (
	stateName = "counters.json"
	saveEvery = time.Minute
)

// stateFile is what the file holds, in JSON.
type stateFile struct {
	Boot      string                       `json:"boot_id"`
	Functions map[string][]counters.Narrow `json:"functions"`
}

func newContinuity(config *Config) *continuity {
	c := &continuity{logger: config.Logger, functions: map[string]*narrow{}}
	if config.StateDir != "" {
		c.fs, c.path = config.Node.FS(), filepath.Join(config.StateDir, stateName)
	}
	return c
}

// begin has the counters of a new device go on from those of the one before it,
// which may still be read, but counts no more.
func (c *continuity) begin(d *device, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.functions[id]
	if n == nil {
		n = &narrow{}
		c.functions[id] = n
	}
	n.by = d
	d.reader.Continue(n.counters)
}

// keep keeps what the counters of a device have come to, which was just read.
func (c *continuity) keep(d *device) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.functions[d.found.Load().ID]
	if n.by != d {
		return
	}
	before := ahead(n.counters)
	n.counters = d.reader.Narrow(n.counters[:0])
	c.isChanged = c.isChanged || ahead(n.counters) != before
}

// ahead is by how much counters are more than the kernel's. It stays the same
// until one wraps, goes back or begins anew.
func ahead(list []counters.Narrow) (sum uint64) {
	for i := range list {
		sum += list[i].Total - list[i].Last
	}
	return sum
}

// load reads the file, before there is a device. What is of no use is left out,
// and is written over later.
func (c *continuity) load() {
	if c.path == "" {
		return
	}
	boot, err := c.fs.Sysctl("kernel/random/boot_id")
	if err != nil {
		c.logger.Warn("counters that wrap begin anew at a restart", "error", fmt.Errorf("ID of this boot: %w", err))
		c.path = ""
		return
	}
	c.boot = boot
	kept, err := c.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		c.logger.Warn("what counters had come to is not known, and they begin anew", "file", c.path, "error", err)
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		for id, list := range kept.Functions {
			c.functions[id] = &narrow{counters: list}
		}
	}
}

func (c *continuity) read() (*stateFile, error) {
	b, err := os.ReadFile(c.path)
	if err != nil {
		return nil, err
	}
	return parseState(b, c.boot)
}

// parseState reads the file of a boot, whole or not at all.
func parseState(b []byte, boot string) (*stateFile, error) {
	var s stateFile
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, err
	}
	if s.Boot != boot {
		return nil, fmt.Errorf("it is of boot %.64q, want %q", s.Boot, boot)
	}
	for id, list := range s.Functions {
		for _, n := range list {
			if n.Total <= n.Last {
				return nil, fmt.Errorf("counter %.64q of %.64q: total %d, want more than last, %d", n.Key, id, n.Total, n.Last)
			}
		}
	}
	return &s, nil
}

// saveAtTimes saves when something has wrapped, though not all the time.
func (c *continuity) saveAtTimes(now time.Time) {
	c.mu.Lock()
	isDue := c.isChanged && now.Sub(c.saved) >= saveEvery
	c.mu.Unlock()
	if isDue {
		c.saved = now
		c.save()
	}
}

// save writes the file, or removes it where there is nothing to keep. That it
// cannot is told once, and no reason to stop.
func (c *continuity) save() {
	if c.path == "" {
		return
	}
	c.mu.Lock()
	state, err := c.state()
	c.isChanged = false
	c.mu.Unlock()
	if err == nil {
		err = c.write(state) // without the lock: who reads devices must not wait for a disk
	}
	if err != nil && !c.isFailing {
		c.logger.Warn("what counters have come to cannot be kept, and those that wrapped begin anew at a restart", "error", err)
	}
	c.isFailing = err != nil
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.isChanged = true // for the next time
	}
}

// state is what the file should hold; nil for no file.
func (c *continuity) state() ([]byte, error) {
	s := stateFile{Boot: c.boot, Functions: map[string][]counters.Narrow{}}
	for id, n := range c.functions {
		if len(n.counters) > 0 {
			s.Functions[id] = n.counters
		}
	}
	if len(s.Functions) == 0 {
		return nil, nil
	}
	return json.Marshal(s)
}

// write makes the file hold the state, in one step.
func (c *continuity) write(state []byte) error {
	if state == nil {
		if err := os.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o755); err != nil { //nolint:gosec // it holds nothing that is secret
		return err
	}
	return renameio.WriteFile(c.path, append(state, '\n'), 0o644)
}
