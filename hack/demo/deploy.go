package main

import "context"

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
	return c.all(ctx, steps)
}

// agentOn returns the name of the agent's pod on a node.
func (c *cluster) agentOn(ctx context.Context, node string) (string, error) {
	return c.run(ctx, "get", "pods", "-n", agentNamespace, "-l", agentLabel, "--field-selector", "status.phase=Running,spec.nodeName="+node,
		"-o", "jsonpath={.items[0].metadata.name}")
}
