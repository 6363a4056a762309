package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"railhead/hack/cluster/driver"
)

// options are the flags of up, which the driver's process gets as they are.
func options(flags *pflag.FlagSet, o *driver.Options) {
	flags.IntVar(&o.Nodes, "nodes", 2, "number of nodes")
	flags.IntVar(&o.Rails, "rails", 8, "rails of each node")
	flags.BoolVar(&o.IPv4, "ipv4", true, "IPv4")
	flags.BoolVar(&o.IPv6, "ipv6", false, "IPv6; with IPv4, dual stack")
}

func upCommand(at func() driver.Dir) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "start a cluster and wait until its nodes are ready",
		Long: "Starts a cluster and waits until its nodes are ready. The first start builds Kubernetes, which takes long;\n" +
			"later ones take seconds. The cluster goes on in the background until down.",
		Args: cobra.NoArgs,
	}
	options(cmd.Flags(), &driver.Options{})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		args := append([]string{"driver", "--dir", string(at())}, changed(cmd.Flags())...)
		if err := startDriver(cmd.Context(), args, cmd.OutOrStdout()); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", at().Kubeconfig())
		return nil
	}
	return cmd
}

// changed are the flags that were set, but for the directory.
func changed(flags *pflag.FlagSet) []string {
	var args []string
	flags.Visit(func(f *pflag.Flag) {
		if f.Name != "dir" {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return args
}

// readyLine is what the driver's process prints when the cluster is ready.
const readyLine = "ready"

// startDriver starts this program again in a session of its own, passes on
// what it says, and leaves it when it is ready. When it is not to be, the
// driver is ended.
func startDriver(ctx context.Context, args []string, out io.Writer) error {
	cmd := exec.Command("/proc/self/exe", args...) //nolint:noctx // it outlives us
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	progress, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var failure strings.Builder
	cmd.Stderr = &failure
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	lines := bufio.NewScanner(progress)
	for lines.Scan() {
		if lines.Text() == readyLine {
			return cmd.Process.Release()
		}
		fmt.Fprintln(out, lines.Text())
	}
	err = errors.Join(lines.Err(), cmd.Wait())
	if said := strings.TrimSpace(failure.String()); said != "" {
		return errors.New(strings.TrimPrefix(said, prefix))
	}
	return fmt.Errorf("the driver ended before the cluster was ready: %w", cmp.Or(err, errSilent))
}

// errSilent is for a driver that ended as if all were well.
var errSilent = errors.New("without a word")

// driverCommand is the process that up leaves behind.
func driverCommand(at func() driver.Dir) *cobra.Command {
	var o driver.Options
	cmd := &cobra.Command{Use: "driver", Short: "run a cluster until told to end it", Hidden: true, Args: cobra.NoArgs}
	options(cmd.Flags(), &o)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithCancelCause(cmd.Context())
		defer cancel(nil)
		up := newAudience(cmd.OutOrStdout(), cancel)
		o.Dir, o.Progress = at(), up
		c, err := driver.Up(ctx, o)
		if err != nil {
			return err
		}
		err = c.Serve(ctx, func() error {
			if _, err := fmt.Fprintln(up, readyLine); err != nil {
				return err
			}
			return detach(at().DriverLog())
		})
		if errors.Is(err, driver.ErrFabricEnded) {
			return err // the logs stay; what still runs ends with us
		}
		return errors.Join(err, c.Close())
	}
	return cmd
}

// audience is whoever waits for the cluster. When they have gone, nobody wants
// it any more.
type audience struct {
	out  io.Writer
	gone context.CancelCauseFunc
}

// errGone is why a cluster ends when its up was killed.
var errGone = errors.New("nobody waits for the cluster any more")

func newAudience(out io.Writer, gone context.CancelCauseFunc) *audience {
	// A pipe without a reader would end us before anything is cleaned up. A
	// signal that is caught, other than one ignored, is not inherited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return &audience{out, gone}
}

// Write tells them.
func (a *audience) Write(line []byte) (int, error) {
	n, err := a.out.Write(line)
	if err != nil {
		a.gone(fmt.Errorf("%w: %w", errGone, err))
	}
	return n, err
}

// detach lets go of the terminal or pipe of whoever started the driver, and
// says what there is to say to a file.
func detach(file string) error {
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if err := syscall.Dup3(int(log.Fd()), int(f.Fd()), 0); err != nil {
			return err
		}
	}
	return nil
}

func downCommand(at func() driver.Dir) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "end the cluster and leave nothing of it; also after an unclean end",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !at().Exists() {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is no cluster's directory: nothing to end there\n", at())
			}
			return at().Down(cmd.Context())
		},
	}
}
