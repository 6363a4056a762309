package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"railhead/hack/cluster/driver"
	"railhead/hack/program"
)

// cluster is the cluster that the demo runs on.
type cluster struct {
	*driver.Status

	kubectl string // path of the program
	isOld   bool   // it ran before the demo began
	out     io.Writer
}

// bringUp finds the cluster of a directory, or starts one that goes on when we
// have ended.
func bringUp(ctx context.Context, dir driver.Dir, out io.Writer) (*cluster, error) {
	c := &cluster{out: out}
	status, err := dir.Status(ctx)
	switch {
	case err == nil:
		c.isOld = true
		err = c.renew(ctx, dir)
	case errors.Is(err, driver.ErrNotRunning):
		if err = c.start(ctx, dir); err == nil {
			status, err = dir.Status(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	c.Status = status
	if len(status.Plan.Nodes) < 2 || len(status.Plan.Rails) == 0 {
		return nil, fmt.Errorf("the cluster in %s has %d nodes and %d rails, want two nodes with rails: end it first",
			dir, len(status.Plan.Nodes), len(status.Plan.Rails))
	}
	c.kubectl, err = driver.Program(ctx, "kubectl")
	return c, err
}

// start starts a cluster, which says itself how it gets on.
func (c *cluster) start(ctx context.Context, dir driver.Dir) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./hack/cluster", "up", "--dir", string(dir))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends what it has begun
	cmd.Stdout, cmd.Stderr = c.out, os.Stderr
	return cmd.Run()
}

// renew gives a cluster that runs already the programs of this checkout.
func (c *cluster) renew(ctx context.Context, dir driver.Dir) error {
	for _, image := range []string{"railhead", "tools"} {
		c.say("a cluster is up: importing the image " + image + " of this checkout")
		if _, err := dir.Give(ctx, driver.Order{Verb: "load", Path: image}); err != nil {
			return err
		}
	}
	return nil
}

// say tells what is done next.
func (c *cluster) say(what string) { fmt.Fprintln(c.out, what) }

// run runs kubectl as the administrator.
func (c *cluster) run(ctx context.Context, args ...string) (string, error) {
	cmd := program.Command(ctx, c.kubectl, append([]string{"--kubeconfig", c.Dir.Kubeconfig()}, args...)...)
	out, err := program.Output(cmd)
	return string(out), err
}

// forward makes a port of this machine of one that a machine of the cluster
// reaches.
func (c *cluster) forward(ctx context.Context, machine, address string) (string, error) {
	return c.Dir.Give(ctx, driver.Order{Verb: "forward", Machine: machine, Address: address})
}
