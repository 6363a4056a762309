package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// unusedFor is how long programs that no run asks for stay, so that checkouts
// with other versions can share the cache.
const unusedFor = 30 * 24 * time.Hour

// cache is a directory that processes share.
//
//	families/<family>-<key>   what was made, keyed by what it was made from
//	sets/<key>                what a caller gets: links to programs of several families
//	apt/<suite>               Debian's package lists
//	<family>.lock             held by who makes the family
//	making/<family>           what is being made; the next to make it begins by removing it
type cache struct {
	dir string
	log *log
}

func newCache(dir string, log *log) *cache { return &cache{dir: dir, log: log} }

func (c *cache) familiesDir() string { return filepath.Join(c.dir, "families") }
func (c *cache) setsDir() string     { return filepath.Join(c.dir, "sets") }
func (c *cache) aptDir() string      { return filepath.Join(c.dir, "apt", debianSuite) }

// product is what was made of a recipe.
type product struct {
	family   Family
	dir      string // with the programs in programsDir
	versions map[string]string
}

// versionsFile is beside a product's programs, and has their versions by name.
const versionsFile = "versions.json"

// place is where a recipe's product is, or will be.
func (c *cache) place(r recipe) string {
	return filepath.Join(c.familiesDir(), string(r.family())+"-"+key(r.inputs()))
}

// has tells whether a recipe's product is there. It appears as a whole.
func (c *cache) has(r recipe) bool {
	_, err := os.Stat(c.place(r))
	return err == nil
}

// product makes what the cache does not have yet.
func (c *cache) product(ctx context.Context, r recipe) (product, error) {
	if !c.has(r) {
		unlock, err := c.lock(ctx, r.family())
		if err != nil {
			return product{}, err
		}
		defer unlock()
		if !c.has(r) {
			if err := c.make(ctx, r); err != nil {
				return product{}, err
			}
		}
	}
	return c.open(r)
}

// make makes a product aside and moves it into its place when it is whole. The
// family's lock is held.
func (c *cache) make(ctx context.Context, r recipe) (err error) {
	start := time.Now()
	work := filepath.Join(c.dir, "making", string(r.family()))
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("remains of an interrupted run: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	out, scratch := filepath.Join(work, "out"), filepath.Join(work, "scratch")
	for _, dir := range []string{c.familiesDir(), filepath.Join(out, programsDir), scratch} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	versions, err := r.make(ctx, filepath.Join(out, programsDir), scratch)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(versions, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, versionsFile), text, 0o644); err != nil {
		return err
	}
	if err := os.Rename(out, c.place(r)); err != nil {
		return err
	}
	c.log.printf("%s: %d programs made in %.0f s", r.family(), len(versions), time.Since(start).Seconds())
	return nil
}

// open is a product that is there. It counts as used now.
func (c *cache) open(r recipe) (product, error) {
	p := product{family: r.family(), dir: c.place(r)}
	if err := touch(p.dir); err != nil {
		return product{}, err
	}
	text, err := os.ReadFile(filepath.Join(p.dir, versionsFile))
	if err == nil {
		err = json.Unmarshal(text, &p.versions)
	}
	if err != nil {
		return product{}, fmt.Errorf("%w (remove %s to have it made anew)", err, p.dir)
	}
	return p, nil
}

// lock waits until no other process makes the family.
func (c *cache) lock(ctx context.Context, f Family) (unlock func(), err error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(c.dir, string(f)+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	const again = time.Second / 5
	for first := true; ; first = false {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil // the lock goes with the file
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
		}
		if first {
			c.log.printf("%s: waiting for another process that makes it", f)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-time.After(again):
		}
	}
}

// prune removes what nobody has used in a while.
func (c *cache) prune() error {
	for _, dir := range []string{c.familiesDir(), c.setsDir()} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			info, err := e.Info()
			if err == nil && time.Since(info.ModTime()) > unusedFor {
				err = os.RemoveAll(filepath.Join(dir, e.Name()))
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("prune cache: %w", err)
			}
		}
	}
	return nil
}

// touch sets the time of last use, by which prune goes.
func touch(dir string) error {
	now := time.Now()
	return os.Chtimes(dir, now, now)
}

// key is a short name for a list of inputs.
func key(inputs []string) string {
	sum := sha256.Sum256([]byte(strings.Join(inputs, "\x00")))
	return fmt.Sprintf("%x", sum[:6])
}
