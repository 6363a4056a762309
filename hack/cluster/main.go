// Command cluster runs a real Kubernetes cluster on this machine, for
// developers, for CI and for anyone who wants to try Railhead: nodes with eight
// rails each, without a container engine, an image registry or hardware. See
// the README beside it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"railhead/hack/cluster/driver"
)

func main() {
	driver.Init() // this program is also the first process of each machine
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, prefix+err.Error())
		os.Exit(1)
	}
}

// prefix begins what goes wrong.
const prefix = "cluster: "

func rootCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "cluster",
		Short:         "A real Kubernetes cluster on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var dir string
	cmd.PersistentFlags().StringVar(&dir, "dir", driver.DefaultDir, "directory of the cluster; two clusters have two")
	at := func() driver.Dir { return driver.At(dir) }
	cmd.AddGroup(
		&cobra.Group{ID: "life", Title: "A cluster:"},
		&cobra.Group{ID: "look", Title: "Looking at it and using it:"},
		&cobra.Group{ID: "fault", Title: "Faults. MACHINE is a node's name or fabric, where the control plane and the switches are:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			cmd.AddCommand(c)
		}
	}
	add("life", upCommand(at), downCommand(at), buildCommand())
	add("look", statusCommand(at), kubectlCommand(at), execCommand(at), logsCommand(at), loadCommand(at), forwardCommand(at))
	add("fault", faultCommands(at)...)
	cmd.AddCommand(driverCommand(at))
	return cmd
}
