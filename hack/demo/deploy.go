package main

import (
	"context"
	"strings"
)

// Names in the manifests.
const (
	agentNamespace = "railhead-system"
	agentLabel     = "app.kubernetes.io/name=railhead-agent"
	agentProgram   = "/usr/local/bin/railhead"
	scenario       = "/etc/railhead/scenario.yaml"
)

// What the demo puts on the cluster: the shipped manifests with what differs here,
// and pods of a job and of a service.
const (
	crds      = "charts/railhead/crds"
	manifests = "deploy/demo"
	workloads = manifests + "/workloads.yaml"
)

// patience is how long pods may take to run: far more than they take.
const patience = "--timeout=600s"

// install installs controller and agents as operators do, and waits until they do
// their work.
func (c *cluster) install(ctx context.Context) error {
	if err := c.all(ctx, [][]string{{"apply", "--server-side", "--force-conflicts", "-f", crds}}); err != nil {
		return err
	}
	render := []string{"kustomize", "--load-restrictor", "LoadRestrictionsNone", manifests}
	apply := []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}
	c.say("kubectl " + strings.Join(render, " ") + " | kubectl " + strings.Join(apply, " "))
	rendered, err := c.run(ctx, render...)
	if err != nil {
		return err
	}
	if err := c.feed(ctx, rendered, apply...); err != nil {
		return err
	}
	var steps [][]string
	if c.isOld { // images and scenarios may be new under the same names
		steps = append(steps, []string{"rollout", "restart", "-n", agentNamespace, "deployment/railhead-controller", "daemonset/railhead-agent"})
	}
	return c.all(ctx, append(steps,
		[]string{"rollout", "status", "-n", agentNamespace, "deployment/railhead-controller", patience},
		[]string{"rollout", "status", "-n", agentNamespace, "daemonset/railhead-agent", patience},
		// The leader registers the webhooks once it leads.
		[]string{"wait", "--for=create", "mutatingwebhookconfiguration/railhead", "validatingwebhookconfiguration/railhead", patience},
	))
}

// deploy starts the job and the service and waits until they run.
func (c *cluster) deploy(ctx context.Context) error {
	return c.all(ctx, [][]string{
		{"apply", "--server-side", "--force-conflicts", "-f", workloads},
		{"rollout", "status", "-n", "serving", "deployment/chat-decode", patience},
		{"wait", "-n", "research", "job/llama-pretrain", "--for=jsonpath={.status.ready}=2", patience},
	})
}

// agentOn returns the name of the agent's pod on a node.
func (c *cluster) agentOn(ctx context.Context, node string) (string, error) {
	return c.run(ctx, "get", "pods", "-n", agentNamespace, "-l", agentLabel, "--field-selector", "status.phase=Running,spec.nodeName="+node,
		"-o", "jsonpath={.items[0].metadata.name}")
}
