// Command railhead gives Kubernetes pods RDMA. The agent serves metrics of the
// node it runs on; the verbs for administrators read and change nothing: devices,
// check, attachments and top the node; pools, networks, addresses and explain the cluster;
// validate files.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// exitCode is an error that says with which status to exit and nothing more:
// what there was to say has been printed.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit status %d", int(c)) }

// failure is an error with the status to exit with, where that is another than
// exitFailed.
type failure struct {
	error

	status int
}

func (f failure) Unwrap() error { return f.error }

// exitFailed is the status of a verb that could not do its work, or was asked
// for something there is not.
const exitFailed = 3

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	return execute(rootCommand(), args, stdout, stderr)
}

// execute executes a command line of a command.
func execute(cmd *cobra.Command, args []string, stdout, stderr io.Writer) int {
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
	fmt.Fprintf(stderr, "railhead: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nrailhead: "))
	if f, ok := errors.AsType[failure](err); ok {
		return f.status
	}
	return exitFailed
}

func rootCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "railhead",
		Version:       versionLine(buildInfo()),
		Short:         "RDMA for Kubernetes pods: rails, addresses, devices and measurements",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.AddCommand(agentCommand(), topCommand(startLocal), devicesCommand(), checkCommand(), attachmentsCommand(runningKernel, time.Now),
		poolsCommand(), networksCommand(), addressesCommand(), explainCommand(), validateCommand(), versionCommand())
	return cmd
}
