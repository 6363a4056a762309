package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"railhead/hack/cluster/image"
	"railhead/hack/program"
)

// What the controller's part of the demo is made of.
const (
	crds               = "charts/railhead/crds"
	namespaceManifest  = "deploy/namespace.yaml"
	controllerManifest = "deploy/railhead-controller.yaml"
	networks           = "deploy/demo/networks/"
)

// control installs the controller as operators do, but with the image of this
// checkout and with injection on.
func (c *cluster) control(ctx context.Context) error {
	manifest, err := os.ReadFile(controllerManifest)
	if err != nil {
		return err
	}
	edited := strings.NewReplacer("railhead:latest", image.Railhead, "enabled: false", "enabled: true").Replace(string(manifest))
	c.say("kubectl apply -f " + crds + " -f " + namespaceManifest + " -f " + controllerManifest + " # with the image of this checkout, and injection on")
	if _, err := c.run(ctx, "apply", "--server-side", "--force-conflicts", "-f", crds); err != nil {
		return err
	}
	if _, err := c.run(ctx, "apply", "--server-side", "--force-conflicts", "-f", namespaceManifest); err != nil {
		return err
	}
	if err := c.feed(ctx, edited, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		return err
	}
	if c.isOld { // the image may be new under the same name
		if _, err := c.run(ctx, "rollout", "restart", "-n", agentNamespace, "deployment/railhead-controller"); err != nil {
			return err
		}
	}
	return c.all(ctx, [][]string{
		{"rollout", "status", "-n", agentNamespace, "deployment/railhead-controller", patience},
		// The leader registers the webhooks once it leads.
		{"wait", "--for=create", "mutatingwebhookconfiguration/railhead", "validatingwebhookconfiguration/railhead", patience},
	})
}

// feed runs kubectl as the administrator, with an input.
func (c *cluster) feed(ctx context.Context, input string, args ...string) error {
	cmd := program.Command(ctx, c.kubectl, append([]string{"--kubeconfig", c.Dir.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	_, err := program.Output(cmd)
	return err
}

// verb runs a verb of the command line against the cluster.
func (c *cluster) verb(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "./cmd/railhead"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Dir.Kubeconfig())
	out, err := program.Output(cmd)
	return string(out), err
}

// refused returns how a wrong manifest is refused, which is what is wanted of it.
func (c *cluster) refused(ctx context.Context) (string, error) {
	out, err := c.run(ctx, "apply", "-f", networks+"wrong.yaml")
	if err == nil {
		return "", fmt.Errorf("%swrong.yaml is accepted: %s", networks, out)
	}
	_, text, _ := strings.Cut(err.Error(), "\n") // behind what program failed
	return text + "\n", nil
}

// injected are arguments of kubectl that show what a pod that asks for the rails
// is given.
func injected() []string {
	return []string{
		"create", "--dry-run=server", "-f", networks + "pod.yaml", "-o",
		`jsonpath={.metadata.annotations.k8s\.v1\.cni\.cncf\.io/networks}{"\n"}{.spec.containers[0].resources.limits}{"\n"}`,
	}
}
