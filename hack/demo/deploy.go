package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Names in deploy/demo.
const (
	agentNamespace = "railhead-system"
	agentLabel     = "app.kubernetes.io/name=railhead-agent"
	agentProgram   = "/usr/local/bin/railhead"
	scenario       = "/etc/railhead/scenario.yaml"
)

// patience is how long pods may take to run.
const patience = "--timeout=180s"

// deploy applies the manifests and waits until everything runs.
func (c *cluster) deploy(ctx context.Context) error {
	steps := [][]string{{"apply", "--server-side", "--force-conflicts", "-f", manifests}}
	if c.isOld { // images and scenarios may be new under the same names
		steps = append(steps, []string{"rollout", "restart", "-n", agentNamespace, "daemonset/railhead-agent"})
	}
	steps = append(steps,
		[]string{"rollout", "status", "-n", agentNamespace, "daemonset/railhead-agent", patience},
		[]string{"rollout", "status", "-n", "serving", "deployment/chat-decode", patience},
		[]string{"wait", "-n", "research", "job/llama-pretrain", "--for=jsonpath={.status.ready}=2", patience},
	)
	for _, step := range steps {
		c.say("kubectl " + strings.Join(step, " "))
		if _, err := c.run(ctx, step...); err != nil {
			pods, _ := c.run(ctx, "get", "pods", "-A", "-o", "wide") // only to say more
			return errors.Join(err, fmt.Errorf("pods:\n%s", pods))
		}
	}
	return nil
}

// agentOn returns the name of the agent's pod on a node.
func (c *cluster) agentOn(ctx context.Context, node string) (string, error) {
	return c.run(ctx, "get", "pods", "-n", agentNamespace, "-l", agentLabel, "--field-selector", "status.phase=Running,spec.nodeName="+node,
		"-o", "jsonpath={.items[0].metadata.name}")
}

// worker returns the name of a pod of the training job, and of its node.
func (c *cluster) worker(ctx context.Context) (pod, node string, err error) {
	said, err := c.run(ctx, "get", "pods", "-n", "research", "-l", "app=llama-pretrain", "--field-selector", "status.phase=Running",
		"-o", "jsonpath={.items[0].metadata.name} {.items[0].spec.nodeName}")
	pod, node, _ = strings.Cut(said, " ")
	return pod, node, err
}
