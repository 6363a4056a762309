// Command demo shows Railhead on a real Kubernetes cluster on this machine
// (hack/cluster): the controller, the agent on every node, pods with eight rails
// each as the printed example of an AI cluster has them, and Prometheus. RDMA is
// simulated on the rails, and used by these and other pods (deploy/demo). It
// prints what there is to see, and how, and where to look next. It needs root.
//
//	go run ./hack/demo up
//	go run ./hack/demo down
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"railhead/hack/cluster/driver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "demo",
		Short:         "Railhead on a real Kubernetes cluster on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var dir string
	cmd.PersistentFlags().StringVar(&dir, "dir", driver.DefaultDir, "directory of the cluster, as that of hack/cluster")
	cmd.AddCommand(&cobra.Command{
		Use:   "up",
		Short: "bring the cluster up, if it is not, put everything on it, and look",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return up(cmd.Context(), driver.At(dir), cmd.OutOrStdout())
		},
	}, &cobra.Command{
		Use:   "down",
		Short: "end the cluster with everything on it",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return driver.At(dir).Down(cmd.Context()) },
	})
	return cmd
}

func up(ctx context.Context, dir driver.Dir, out io.Writer) error {
	c, err := bringUp(ctx, dir, out)
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{c.install, c.deploy, c.attach} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	p, err := startPrometheus(ctx, c)
	if err != nil {
		return fmt.Errorf("prometheus: %w", err)
	}
	return show(ctx, c, p)
}
