package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/policy"
)

const (
	// askFor is for how long a start waits for an API server without which it can
	// begin with what an earlier run was told, and askEvery how often it looks.
	askFor   = 3 * time.Second
	askEvery = 100 * time.Millisecond

	// keepAfter is for how long news is gathered before it goes to the disk, and
	// keepEvery is how often that is at most.
	keepAfter = time.Second
	keepEvery = 10 * time.Second

	// keepAgain is after how long a disk is tried again that took nothing.
	keepAgain = time.Minute
)

// disk is where what is known is kept. Of it, note alone is safe for concurrent use.
type disk struct {
	path string        // of the file; empty: nothing is kept
	news chan struct{} // of one: what is known is other than what is there

	isOpen   bool      // what an earlier run kept was looked at, or is not needed
	asOf     time.Time // as of when that was known; zero where it is not needed
	old      []*kind   // of which that was taken
	isFailed bool      // nothing could be written
	isClean  bool      // of what earlier runs left half written
}

func newDisk(dir string) disk {
	d := disk{news: make(chan struct{}, 1)}
	if dir != "" {
		d.path = filepath.Join(dir, diskFile)
	}
	return d
}

// note says that there is news.
func (d *disk) note() {
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// keep begins with what an earlier run kept, if the API server does not tell, and
// keeps what is known until ctx ends.
func (c *Cache) keep(ctx context.Context) {
	if c.disk.path == "" {
		return
	}
	c.recall(ctx)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-c.disk.news:
		}
		pause(ctx, keepAfter)
		if ctx.Err() != nil {
			c.disk.note() // for keepLast
			return
		}
		next := keepEvery
		if !c.write() {
			next = keepAgain
			c.disk.note()
		}
		pause(ctx, next)
	}
}

// keepLast keeps what is known, if that is news, once nothing comes any more.
func (c *Cache) keepLast() {
	if len(c.disk.news) > 0 && c.disk.isOpen {
		c.write()
	}
}

// write has the disk hold what is known, and tells whether it does.
func (c *Cache) write() bool {
	select {
	case <-c.disk.news: // it is written with the rest
	default:
	}
	c.clean()
	node, _ := c.Node()
	at := time.Now()
	if slices.ContainsFunc(c.disk.old, func(k *kind) bool { return !k.store.current() }) {
		at = c.disk.asOf
	}
	err := writeParts(c.disk.path, heading{Version: diskVersion, Node: c.node, UID: node.UID, At: at}, c.parts())
	switch {
	case err != nil && !c.disk.isFailed:
		c.log.Warn("what is known of networks and pods cannot be kept on the node: an agent that starts while the API server is away will not know it", "error", err)
	case err == nil && c.disk.isFailed:
		c.log.Info("what is known of networks and pods is kept on the node again")
	}
	c.disk.isFailed = err != nil
	return err == nil
}

// recall gives the API server a moment, and then takes from the disk what it does
// not tell of.
func (c *Cache) recall(ctx context.Context) {
	for end := time.Now().Add(askFor); !c.isAnswered() && time.Now().Before(end); {
		if pause(ctx, askEvery); ctx.Err() != nil {
			return
		}
	}
	c.disk.isOpen = true
	c.clean()
	parts := []part{c.partAbove()}
	if !c.pods.current() { // else each that comes has its namespace read
		parts = append(parts, c.partNamespaces())
	}
	var old []*kind
	var titles []string
	for _, k := range c.kinds {
		if !k.store.current() && isAway(k.link.failure()) {
			old, titles, parts = append(old, k), append(titles, k.title), append(parts, k.part())
		}
	}
	if old == nil {
		return
	}
	h, err := readParts(c.disk.path, c.isOurs, parts)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is the first run
	case err != nil:
		c.log.Warn("what was known of networks and pods before this start is not used", "error", err)
	default:
		c.disk.asOf, c.disk.old = h.At, old
		c.log.Warn("the API server has not told of networks and pods since this start: they are as they were", "as_of", h.At, "pods", len(c.pods.names()), "kinds", titles)
	}
}

// isAway says of an API server that has not told of a kind whether it may be away:
// that it has no such kind, or that we may not read it, is an answer.
func isAway(err error) bool {
	return !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err)
}

// Forget removes what an agent that is uninstalled kept in its directory.
func Forget(dir string) error {
	if err := os.Remove(filepath.Join(dir, diskFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// isAnswered tells whether the API server has told of each kind, or why it does not.
func (c *Cache) isAnswered() bool {
	return !slices.ContainsFunc(c.kinds, func(k *kind) bool { return !k.store.current() && k.link.failure() == nil })
}

// isOurs returns why what was kept is of another node; nil if it is of this one.
func (c *Cache) isOurs(h heading) error {
	if h.Node != c.node {
		return fmt.Errorf("it is of node %s, want %s", h.Node, c.node)
	}
	if node, _ := c.Node(); node.UID != "" && h.UID != "" && node.UID != h.UID {
		return fmt.Errorf("it is of a node %s with UID %s, want %s", h.Node, h.UID, node.UID)
	}
	return nil
}

// clean removes what was being written when an earlier run died. While another agent
// writes, which may be about to end, that is for later.
func (c *Cache) clean() {
	if c.disk.isClean {
		return
	}
	unlock, err := lockDirectory(filepath.Dir(c.disk.path), unix.LOCK_EX|unix.LOCK_NB)
	c.disk.isClean = err == nil || errors.Is(err, fs.ErrNotExist)
	if err != nil {
		return
	}
	defer func() { _ = unlock() }()
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(c.disk.path), "."+diskFile+"*")) // the pattern is good
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			c.log.Debug("what an earlier run did not end writing stays", "error", err)
		}
	}
}

// pause waits, until ctx ends at most.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// parts are what is kept.
func (c *Cache) parts() []part {
	parts := []part{c.partNamespaces(), c.partAbove()}
	for _, k := range c.kinds {
		parts = append(parts, k.part())
	}
	return parts
}

// part is the kind's.
func (k *kind) part() part {
	return part{
		title: k.title, isKnown: k.store.read, done: k.store.recalled,
		each: func(tell func(any) error) error {
			for _, key := range k.store.names() {
				o := k.store.get(key.Namespace, key.Name)
				if !k.store.keep {
					o = k.again(key.Name)
				}
				if o == nil {
					continue // it has gone, or nobody could use it
				}
				if err := tell(o); err != nil {
					return err
				}
			}
			return nil
		},
		parse: func(text []byte) (func(), error) {
			o, ok := k.sample.DeepCopyObject().(metav1.Object)
			if !ok {
				return nil, fmt.Errorf("a %T is no object", k.sample)
			}
			err := json.Unmarshal(text, o)
			if err == nil && o.GetName() == "" {
				err = errors.New("it has no name")
			}
			return func() { k.store.recall(o) }, err
		},
	}
}

// partNamespaces is that of namespaces.
func (c *Cache) partNamespaces() part {
	return part{
		title: "Namespaces", isKnown: always, done: func() {},
		each: func(tell func(any) error) error {
			for _, n := range c.namespaces.all() {
				if err := tell(n.meta); err != nil {
					return err
				}
			}
			return nil
		},
		parse: func(text []byte) (func(), error) {
			meta := &metav1.ObjectMeta{}
			err := json.Unmarshal(text, meta)
			if err == nil && meta.Name == "" {
				err = errors.New("it has no name")
			}
			return func() { c.namespaces.recall(meta) }, err
		},
	}
}

// aboveLine is what is above a controller.
type aboveLine struct {
	UID          types.UID            `json:"uid"`
	Applications []policy.Application `json:"applications"`
}

// partAbove is that of what is above controllers, which is for ever.
func (c *Cache) partAbove() part {
	return part{
		title: "Above controllers", isKnown: always, done: func() {},
		each: func(tell func(any) error) error {
			for uid, applications := range c.above.all() {
				if err := tell(aboveLine{uid, applications}); err != nil {
					return err
				}
			}
			return nil
		},
		parse: func(text []byte) (func(), error) {
			var line aboveLine
			err := json.Unmarshal(text, &line)
			return func() { c.above.set(line.UID, line.Applications) }, err
		},
	}
}

func always() bool { return true }
