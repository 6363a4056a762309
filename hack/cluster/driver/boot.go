package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/component"
	"railhead/hack/cluster/image"
	"railhead/hack/cluster/plan"
)

// bootFunc connects a machine that has just been turned on, and starts its
// services.
type bootFunc func(ctx context.Context, m *machine, b *box.Box) error

// bootFabric makes the switches, and the API server a port of the host.
func (c *Cluster) bootFabric(_ context.Context, _ *machine, _ *box.Box) error {
	c.progress.say("fabric: on")
	if err := c.fabric.Build(); err != nil {
		return err
	}
	c.progress.say("fabric: switches")
	return c.forwardAPI() //nolint:contextcheck // the port outlives the start
}

// startControlPlane is done when the API server has what it needs to know.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	b, err := c.on(plan.Fabric)
	if err != nil {
		return err
	}
	all, each := errgroup.WithContext(ctx)
	for _, s := range c.machines[plan.Fabric].services {
		all.Go(func() error { return c.startService(each, b, plan.Fabric, s) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	return c.settle(ctx)
}

// bootNode connects a node and starts what runs on it. The kubelet tells the
// API server of the node by itself.
func (c *Cluster) bootNode(ctx context.Context, m *machine, b *box.Box) error {
	c.progress.say("%s: on", m.spec.Name)
	if err := c.fabric.Connect(m.spec.Name); err != nil {
		return err
	}
	c.progress.say("%s: connected", m.spec.Name)
	if err := c.installPlugins(b); err != nil {
		return err
	}
	first, rest := m.services[0], m.services[1:] // the container runtime, and what needs it
	if err := c.startService(ctx, b, m.spec.Name, first); err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		for _, i := range c.images {
			if _, err := c.importImage(ctx, m.spec.Name, b, i.Path); err != nil {
				return err
			}
			c.progress.say("%s: image %s", m.spec.Name, i.Name)
		}
		return nil
	})
	for _, s := range rest {
		all.Go(func() error { return c.startService(ctx, b, m.spec.Name, s) })
	}
	return all.Wait()
}

func (c *Cluster) startService(ctx context.Context, b *box.Box, machine string, s box.Service) error {
	if err := b.StartService(ctx, s); err != nil {
		return err
	}
	c.progress.say("%s: %s", machine, s.Name)
	return nil
}

// installPlugins copies the CNI plugins to where others may install more.
func (c *Cluster) installPlugins(b *box.Box) error {
	root, err := os.OpenRoot(b.Root())
	if err != nil {
		return err
	}
	defer root.Close()
	dir := filepath.Join(".", component.CNIPlugins)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range cniPlugins {
		if err := c.install(root, p, filepath.Join(dir, p)); err != nil {
			return fmt.Errorf("CNI plugin %s: %w", p, err)
		}
	}
	return nil
}

func (c *Cluster) install(root *os.Root, program, target string) error {
	source, err := c.programs.Path(program)
	if err != nil {
		return err
	}
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := root.OpenFile(target, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// importImage gives the images of an archive to a node's container runtime and
// returns what that says of them.
func (c *Cluster) importImage(ctx context.Context, name string, b *box.Box, path string) (string, error) {
	archive, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer archive.Close()
	var said, failure bytes.Buffer
	err = b.Run(ctx, box.Command{
		// The label is how the runtime's kubelet side knows an image that it did not pull itself.
		Args:  []string{"ctr", "--namespace", "k8s.io", "images", "import", "--label", "io.cri-containerd.image=managed", "-"},
		Stdin: archive, Stdout: &said, Stderr: &failure,
	})
	if err != nil {
		return "", fmt.Errorf("import %s on %s: %w: %s", path, name, err, failure.String())
	}
	return said.String(), nil
}

// Load imports images into every node: an archive on the host, or one of ours by
// its name, built anew. It returns what a node says of them.
func (c *Cluster) Load(ctx context.Context, word string) (string, error) {
	path := word
	if name, ok := image.Named(word); ok {
		config, err := c.imageConfig()
		if err != nil {
			return "", err
		}
		images, err := image.Build(ctx, config, name)
		if err != nil {
			return "", err
		}
		path = images[0].Path
	}
	said := make([]string, len(c.plan.Nodes))
	var all errgroup.Group
	for i, n := range c.plan.Nodes {
		all.Go(func() error {
			b, err := c.on(n.Name)
			if err != nil {
				return err
			}
			said[i], err = c.importImage(ctx, n.Name, b, path)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return "", err
	}
	return strings.TrimSpace(said[0]), nil
}

// forwardAPI makes the API server a port of the host, and writes the
// administrator's kubeconfig for it.
func (c *Cluster) forwardAPI() error {
	address, err := c.Forward(plan.Fabric, component.APIServerAddress(c.plan))
	if err != nil {
		return err
	}
	c.api = address
	kubeconfig, err := c.keys.Kubeconfig("https://"+c.api, c.keys.Admin)
	if err != nil {
		return err
	}
	return os.WriteFile(c.dir.Kubeconfig(), kubeconfig, 0o600)
}
