//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// unusedFor is how long a product that no run asks for stays in the cache, so that two checkouts with different
// recipes can share one.
const unusedFor = 14 * 24 * time.Hour

// cache is the lab's directory, locked for this process until close.
//
//	lock               the lock file
//	apt/<suite>        package lists
//	products/<n>-<key> what was made, each keyed by what it was made from
//	making             what is being made; emptied by the next run
type cache struct {
	dir  string
	lock *os.File
	logf func(string, ...any)
}

// openCache makes the cache's directories, takes its lock and removes what an interrupted run left.
func openCache(dir string, logf func(string, ...any)) (*cache, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("cache %q: not an absolute path", dir)
	}
	c := &cache{dir: dir, logf: logf}
	for _, d := range []string{c.aptDir(""), c.productsDir(), c.makingDir()} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
	}
	var err error
	if c.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	if err := c.takeLock(); err != nil {
		c.close()
		return nil, err
	}
	if err := emptyDir(c.makingDir()); err != nil {
		c.close()
		return nil, fmt.Errorf("cache: leftovers of an interrupted run: %w", err)
	}
	return c, nil
}

// takeLock waits for another run that is preparing the same cache, and says so.
func (c *cache) takeLock() error {
	err := syscall.Flock(int(c.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		c.logf("waiting for another run that prepares %s", c.dir)
		err = syscall.Flock(int(c.lock.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", c.lock.Name(), err)
	}
	return nil
}

// close releases the lock, which goes with the file.
func (c *cache) close() { _ = c.lock.Close() }

func (c *cache) aptDir(suite string) string { return filepath.Join(c.dir, "apt", suite) }
func (c *cache) productsDir() string        { return filepath.Join(c.dir, "products") }
func (c *cache) makingDir() string          { return filepath.Join(c.dir, "making") }

// product returns the directory of a product. When it is not in the cache yet, build writes it into out, with scratch
// for what is not kept, and it is renamed into place when whole. The inputs are everything that decides its content.
func (c *cache) product(ctx context.Context, name string, inputs []string, build func(ctx context.Context, out, scratch string) error) (string, error) {
	dir := filepath.Join(c.productsDir(), name+"-"+key(inputs))
	if _, err := os.Stat(dir); err == nil {
		return dir, touch(dir)
	}
	work, err := os.MkdirTemp(c.makingDir(), name+"-")
	if err != nil {
		return "", err
	}
	start := time.Now()
	out, scratch := filepath.Join(work, "out"), filepath.Join(work, "scratch")
	if err = mkdirs(out, scratch); err == nil {
		err = build(ctx, out, scratch)
	}
	if err == nil {
		err = os.Rename(out, dir)
	}
	if err := errors.Join(err, os.RemoveAll(work)); err != nil {
		return "", err
	}
	c.logf("made %s in %.0f s", name, time.Since(start).Seconds())
	return dir, touch(dir) // unpacked packages bring their own times
}

// touch sets a product's time of last use, by which prune goes.
func touch(dir string) error {
	now := time.Now()
	return os.Chtimes(dir, now, now)
}

// key is a short name for a list of inputs.
func key(inputs []string) string {
	sum := sha256.Sum256([]byte(strings.Join(inputs, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// prune removes products that nobody has used for a while.
func (c *cache) prune() error {
	entries, err := os.ReadDir(c.productsDir())
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && time.Since(info.ModTime()) < unusedFor {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(c.productsDir(), e.Name())); err != nil {
			return fmt.Errorf("prune cache: %w", err)
		}
	}
	return nil
}
