package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"railhead/hack/cluster/driver"
	"railhead/hack/cluster/image"
	"railhead/hack/program"
)

// acceptance has the printed example of an AI cluster: eight rails as networks,
// and a DaemonSet that asks for all of them.
const acceptance = "hack/test/api/testdata/acceptance/ai-cluster-macvlan/"

// What the DaemonSet asks of nodes: their names, and an image.
const (
	workers    = "worker"
	rdmaTools  = "docker.io/library/rdma-tools:latest"
	networksNS = "spiderpool"
)

// theDaemonSet is it without the limits, which are of devices that these nodes
// do not have.
const theDaemonSet = "sed '/^          resources:/,$d' " + acceptance + "workload.yaml"

// attach gives the cluster the printed networks, and a pod with all of them to
// each node.
func (c *cluster) attach(ctx context.Context) error {
	if err := c.feed(ctx, "{apiVersion: v1, kind: Namespace, metadata: {name: "+networksNS+"}}", "apply", "-f", "-"); err != nil {
		return err
	}
	steps := [][]string{
		{"apply", "-f", acceptance + "network.yaml"},
		{"apply", "-f", networks + "rails.yaml"},
		{"wait", "-A", "--for=condition=Ready", "spidermultusconfigs", "--all", patience},
		{"wait", "--for=condition=Ready", "spiderippools", "--all", patience},
	}
	for i, n := range c.Plan.Nodes { // the printed DaemonSet is for worker1 and worker2, by their labels
		steps = append(steps, []string{"label", "node", n.Name, fmt.Sprintf("kubernetes.io/hostname=%s%d", workers, i+1), "--overwrite"})
		if err := c.onNode(ctx, n.Name, "ctr", "--namespace", "k8s.io", "images", "tag", "--force", image.Tools, rdmaTools); err != nil {
			return err
		}
	}
	if err := c.all(ctx, steps); err != nil {
		return err
	}
	daemonSet, err := program.Output(program.Command(ctx, "sh", "-c", theDaemonSet))
	if err != nil {
		return err
	}
	c.say(theDaemonSet + " | kubectl apply -f -")
	if err := c.feed(ctx, string(daemonSet), "apply", "-f", "-"); err != nil {
		return err
	}
	return c.all(ctx, [][]string{
		{"rollout", "status", "daemonset/rdma-tools", patience},
		// What a pod was given is written a moment after it runs.
		{"wait", "pods", "-l", "app=rdma-tools", `--for=jsonpath={.metadata.annotations.k8s\.v1\.cni\.cncf\.io/network-status}`, patience},
	})
}

// all runs kubectl a few times, and says how.
func (c *cluster) all(ctx context.Context, steps [][]string) error {
	for _, step := range steps {
		c.say("kubectl " + strings.Join(step, " "))
		if _, err := c.run(ctx, step...); err != nil {
			pods, _ := c.run(ctx, "get", "pods", "-A", "-o", "wide") // only to say more
			events, _ := c.run(ctx, "get", "events", "-A", "--field-selector=type=Warning")
			return errors.Join(err, fmt.Errorf("pods:\n%swarnings:\n%s", pods, events))
		}
	}
	return nil
}

// onNode runs a command on a machine of the cluster, and says how.
func (c *cluster) onNode(ctx context.Context, machine string, command ...string) error {
	c.say("go run ./hack/cluster exec " + machine + " " + strings.Join(command, " "))
	_, err := c.there(ctx, machine, command...)
	return err
}

// there runs a command on a machine of the cluster and returns what it prints.
func (c *cluster) there(ctx context.Context, machine string, command ...string) (string, error) {
	for _, m := range c.Machines {
		if m.Name != machine {
			continue
		}
		cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--target", fmt.Sprint(m.PID), "--all", "--"}, command...)...)
		cmd.Env = []string{driver.Path}
		out, err := program.Output(cmd)
		return string(out), err
	}
	return "", fmt.Errorf("the cluster has no machine %s", machine)
}
