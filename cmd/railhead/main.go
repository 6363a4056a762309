// Command railhead gives Kubernetes pods RDMA. Its verbs for administrators,
// devices and check, read the node they run on and change nothing.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// exitCode is an error that says with which status to exit and nothing more:
// what there was to say has been printed.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit status %d", int(c)) }

// exitFailed is the status of a verb that could not do its work, or was asked
// for something there is not.
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
	err := cmd.Execute()
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintf(stderr, "railhead: %v\n", err)
	return exitFailed
}

func rootCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "railhead",
		Short:         "RDMA for Kubernetes pods: rails, addresses, devices and measurements",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(devicesCommand(), checkCommand(), versionCommand())
	return cmd
}
