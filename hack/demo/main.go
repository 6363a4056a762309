// Command demo shows Railhead on a real Kubernetes cluster on this machine
// (hack/cluster): the agent on every node, with RDMA simulated on the nodes'
// rails, pods that use it (deploy/demo), and Prometheus. It prints what these
// tell, and says where to look next. It needs root.
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

// manifests are what the demo puts on the cluster.
const manifests = "deploy/demo"

func up(ctx context.Context, dir driver.Dir, out io.Writer) error {
	c, err := bringUp(ctx, dir, out)
	if err != nil {
		return err
	}
	if err := c.deploy(ctx); err != nil {
		return err
	}
	if err := c.control(ctx); err != nil {
		return err
	}
	p, err := startPrometheus(ctx, c)
	if err != nil {
		return fmt.Errorf("prometheus: %w", err)
	}
	return show(ctx, c, p)
}
