package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"railhead/internal/top"
)

// startInProcess starts an exporter in this process, which samples the devices
// of this node each time it is asked. It ends with the context.
type startInProcess func(ctx context.Context) (func(ctx context.Context) ([]byte, error), error)

func topCommand(inProcess startInProcess) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top [devices | pods | workloads]",
		Short: "Show live rates of devices, pods and workloads, the worst first",
		Long: `Show how the RDMA devices, pods and workloads of a node are doing right now:
throughput and how much of the link it is, pauses, retransmissions, packets out
of sequence, congestion notifications, drops, errors and port states, the worst
first. The key ? tells the others, and what the columns mean.

Numbers come from the agent of this node, from that of another node (--agent),
or, where no agent answers, from the devices of this node themselves (--local).
Agents read traffic every 5 s and events every 15 s, or as they are told, however
often they are asked. So --once takes 15 s with an agent unless --interval says
otherwise, and longer where the agent has not read traffic twice by then: up to
ten intervals, and at least a minute. Events that come less often than --interval
may be missed.`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{string(top.Devices), string(top.Pods), string(top.Workloads)},
	}
	f := addTopFlags(cmd)
	f.inProcess = inProcess
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.hasInterval = cmd.Flags().Changed("interval")
		choice, err := f.choice(args)
		if err != nil {
			return err
		}
		ctx, stop := context.WithCancel(cmd.Context())
		defer stop()
		source, err := f.source(ctx, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		isAttended := isTerminal(cmd.OutOrStdout()) && !isNoTerminal(cmd.InOrStdin())
		if f.isOnce || f.output.value == formatJSON || !isAttended {
			return f.once(ctx, cmd, source, choice)
		}
		return top.Run(ctx, top.Options{
			Source: source, Interval: f.intervalOr(topInterval), Window: f.window,
			Choice: choice, HasColor: hasColor(cmd.OutOrStdout()),
		}, cmd.InOrStdin(), cmd.OutOrStdout())
	}
	return cmd
}

// How long it is between two scrapes unless an administrator says otherwise.
const (
	topInterval      = 2 * time.Second
	topIntervalLeast = 200 * time.Millisecond
)

type topFlags struct {
	inProcess    startInProcess
	agent        string
	isLocal      bool
	user         string
	passwordFile string
	caFile       string
	interval     time.Duration
	hasInterval  bool
	window       time.Duration
	isOnce       bool
	order        string
	unit         string
	filter       string
	output       *formatFlag
}

func addTopFlags(cmd *cobra.Command) *topFlags {
	f := &topFlags{}
	flags := cmd.Flags()
	flags.StringVar(&f.agent, "agent", "", "ask the agent at this URL, or host and port (default: "+top.DefaultAgent+" if an agent answers there)")
	flags.BoolVar(&f.isLocal, "local", false, "ask no agent: read the devices of this node")
	flags.StringVar(&f.user, "user", "", "user for the agent's basic authentication")
	flags.StringVar(&f.passwordFile, "password-file", "", "file with the password of --user")
	flags.StringVar(&f.caFile, "ca-file", "", "PEM file of the CA that vouches for the agent (default: those of the system)")
	flags.DurationVar(&f.interval, "interval", 0, "time between two samples (default: 2s; 15s for --once with an agent)")
	flags.DurationVar(&f.window, "window", top.DefaultWindow, "time over which events such as retransmissions are counted")
	flags.BoolVar(&f.isOnce, "once", false, "print one table and exit; so it is too when standard input or output is no terminal")
	flags.StringVar(&f.order, "sort", top.Worst, "column to sort by: "+strings.Join(top.Orders(top.Devices), ", "))
	flags.StringVar(&f.unit, "unit", string(top.Bits), "unit of throughput: bit/s or B/s")
	flags.StringVar(&f.filter, "filter", "", "show only rows that have these words")
	f.output = addFormatFlag(cmd, formatText, formatJSON)
	cmd.MarkFlagsMutuallyExclusive("agent", "local")
	return f
}

// choice checks how the table is to be shown.
func (f *topFlags) choice(args []string) (top.Choice, error) {
	choice := top.Choice{View: top.Devices, Order: f.order, Unit: top.Unit(f.unit), Filter: f.filter}
	if len(args) > 0 {
		choice.View = top.View(args[0])
	}
	orders := top.Orders(choice.View)
	switch {
	case !slices.Contains(orders, f.order):
		return choice, fmt.Errorf("--sort: %s have no column %q, they have %s", choice.View, f.order, strings.Join(orders, ", "))
	case choice.Unit != top.Bits && choice.Unit != top.Bytes:
		return choice, fmt.Errorf("--unit: there is no unit %q, there are %s and %s", f.unit, top.Bits, top.Bytes)
	case f.hasInterval && f.interval < topIntervalLeast:
		return choice, fmt.Errorf("--interval: %s is less than %s", f.interval, topIntervalLeast)
	case (f.user == "") != (f.passwordFile == ""):
		return choice, errors.New("--user and --password-file go together: one of them is missing")
	case f.window <= 0:
		return choice, fmt.Errorf("--window: %s is not more than 0", f.window)
	}
	return choice, nil
}

// source finds out where numbers come from, and says so.
func (f *topFlags) source(ctx context.Context, stderr io.Writer) (top.Source, error) {
	if f.isLocal {
		return f.local(ctx)
	}
	agent, err := f.newAgent()
	if err != nil || f.agent != "" {
		return agent, err
	}
	_, err = agent.Scrape(ctx)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return agent, err
	}
	local, localErr := f.local(ctx)
	if localErr != nil {
		return nil, fmt.Errorf("no agent answers (%w), and this node cannot be read without one: %w", err, localErr)
	}
	fmt.Fprintf(stderr, "railhead: no agent answers at %s; reading %s\n", top.DefaultAgent, local.Name())
	return local, nil
}

func (f *topFlags) local(ctx context.Context) (top.Source, error) {
	if f.inProcess == nil {
		return nil, errors.New("this build has no exporter in it")
	}
	render, err := f.inProcess(ctx)
	if err != nil {
		return nil, err
	}
	return top.InProcess{Render: render}, nil
}

func (f *topFlags) newAgent() (*top.Agent, error) {
	config := top.AgentConfig{URL: f.agent, User: f.user}
	if f.agent == "" {
		config.URL = top.DefaultAgent
	}
	if f.passwordFile != "" {
		password, err := os.ReadFile(f.passwordFile)
		if err != nil {
			return nil, fmt.Errorf("--password-file: %w", err)
		}
		config.Password = strings.TrimRight(string(password), "\r\n")
	}
	if f.caFile != "" {
		ca, err := os.ReadFile(f.caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		config.CA = ca
	}
	return top.NewAgent(config)
}

func (f *topFlags) intervalOr(usual time.Duration) time.Duration {
	if !f.hasInterval {
		return usual
	}
	return f.interval
}

// once prints one table.
func (f *topFlags) once(ctx context.Context, cmd *cobra.Command, source top.Source, choice top.Choice) error {
	_, isLocal := source.(top.InProcess)
	usual := top.EventsInterval
	if isLocal {
		usual = topInterval
	}
	interval := f.intervalOr(usual)
	if isLocal {
		fmt.Fprintf(cmd.ErrOrStderr(), "railhead: watching %s, for %s\n", source.Name(), interval)
	} else {
		fmt.Fprintf(cmd.ErrOrStderr(), "railhead: watching %s for %s, longer if it has not read traffic twice by then\n", source.Name(), interval)
	}
	frame, err := top.Once(ctx, source, interval)
	if err != nil {
		return err
	}
	if f.output.value == formatJSON {
		return printData(cmd.OutOrStdout(), formatJSON, frame.Chosen(choice))
	}
	out := cmd.OutOrStdout()
	return frame.Print(out, choice, terminalWidth(out), hasColor(out))
}

// isNoTerminal tells whether a reader is a file that nobody types into.
func isNoTerminal(r io.Reader) bool {
	file, ok := r.(*os.File)
	return ok && !term.IsTerminal(int(file.Fd()))
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// hasColor follows https://no-color.org.
func hasColor(w io.Writer) bool { return isTerminal(w) && os.Getenv("NO_COLOR") == "" }

// terminalWidth is 0 for what is no terminal.
func terminalWidth(w io.Writer) int {
	if !isTerminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return width
}
