// Command railhead-controller is the controller of a cluster: it admits what
// users write, injects networks into pods, and keeps networks, pools and subnets.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// exitFailed is the status of a controller that could not go on.
const exitFailed = 3

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	cmd := rootCommand()
	cmd.SetArgs(append([]string{}, args...)) // nil would be the arguments of the process
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	return exitStatus(cmd.Execute(), stderr)
}

// exitStatus tells of an error. To be told to end is none, and what was canceled
// without that is one as any other.
func exitStatus(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "railhead-controller: %v\n", err)
	return exitFailed
}

func rootCommand() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:     "railhead-controller",
		Version: versionLine(),
		Short:   "Run the controller of a cluster: admission, networks, pools and subnets",
		Long: `Run the controller of a cluster. Every replica admits the objects that users write
and injects networks into pods; one of them, the leader, keeps networks, pools and
subnets. It runs as a Deployment (deploy/railhead-controller.yaml), or anywhere
with --kubeconfig and a --webhook-url at which the API server finds it.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return f.run(ctx, cmd.ErrOrStderr())
		},
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	f.add(cmd.Flags())
	return cmd
}
