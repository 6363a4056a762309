package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"railhead/hack/program"
)

// networks has what the demo shows of networks and pools.
const networks = "deploy/demo/networks/"

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
