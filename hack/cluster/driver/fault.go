package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"railhead/hack/cluster/box"
)

// component does something to a component of a machine that is on.
func (c *Cluster) component(machine, component string, do func(b *box.Box) error) error {
	m, err := c.machine(machine)
	if err != nil {
		return err
	}
	if err := m.has(component); err != nil {
		return err
	}
	b, err := m.running()
	if err != nil {
		return err
	}
	return do(b)
}

// Stop ends a component and leaves it so.
func (c *Cluster) Stop(machine, component string) error {
	return c.component(machine, component, func(b *box.Box) error { return b.Stop(component) })
}

// Kill ends a component as kill -9 does. What supervises it starts it again.
func (c *Cluster) Kill(machine, component string) error {
	return c.component(machine, component, func(b *box.Box) error { return b.Kill(component) })
}

// Pause stops a component in its tracks.
func (c *Cluster) Pause(machine, component string) error {
	return c.component(machine, component, func(b *box.Box) error { return b.Pause(component) })
}

// Resume lets a paused component go on.
func (c *Cluster) Resume(machine, component string) error {
	return c.component(machine, component, func(b *box.Box) error { return b.Resume(component) })
}

// Restart ends a component, if it runs, and waits until it is ready again.
func (c *Cluster) Restart(ctx context.Context, machine, component string) error {
	return c.component(machine, component, func(b *box.Box) error { return b.Restart(ctx, component) })
}

// Crash takes a node's power away: everything on it ends at once, its disk
// stays. The fabric cannot crash, its links are the cluster.
func (c *Cluster) Crash(node string) error {
	m, err := c.node(node)
	if err != nil {
		return err
	}
	if err := m.crash(); err != nil {
		return err
	}
	c.disconnect(node)
	return nil
}

// Boot starts a node that crashed.
func (c *Cluster) Boot(ctx context.Context, node string) error {
	m, err := c.node(node)
	if err != nil {
		return err
	}
	return m.start(ctx)
}

// Reboot is Crash and Boot.
func (c *Cluster) Reboot(ctx context.Context, node string) error {
	if err := c.Crash(node); err != nil {
		return err
	}
	return c.Boot(ctx, node)
}

// node finds a machine that is a node.
func (c *Cluster) node(name string) (*machine, error) {
	if _, ok := c.plan.Node(name); !ok {
		return nil, fmt.Errorf("node %q: want one of %s", name, c.nodeNames())
	}
	return c.machine(name)
}

// disk is the root of a node that is on.
func (c *Cluster) disk(node string) (string, error) {
	if _, err := c.node(node); err != nil {
		return "", err
	}
	b, err := c.on(node)
	if err != nil {
		return "", err
	}
	return b.Root(), nil
}

// filler is the file that takes all room on a full disk.
const filler = "filler"

// Fill takes all room of a node's disk.
func (c *Cluster) Fill(node string) error {
	root, err := c.disk(node)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(root, filler), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	// Room that is asked for at once is had or not; the rest goes in pieces.
	for size := int64(1 << 40); size >= 4096; {
		end, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		switch err := unix.Fallocate(int(f.Fd()), 0, end, size); {
		case errors.Is(err, unix.EINTR): // what it has taken is its own
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EFBIG):
			size /= 2
		case err != nil:
			return fmt.Errorf("fill the disk of %s: %w", node, err)
		}
	}
	return nil
}

// Free undoes Fill.
func (c *Cluster) Free(node string) error {
	root, err := c.disk(node)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(root, filler)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
