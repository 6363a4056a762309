package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"railhead/internal/agent"
	"railhead/internal/attribution"
	"railhead/internal/attribution/podresources"
	"railhead/internal/counters"
	"railhead/internal/exporter"
	"railhead/internal/simulation"
)

// agentFlags is what an administrator says to the agent.
type agentFlags struct {
	listen     []string
	webConfig  string
	simulate   string
	rails      []string
	nodeName   string
	kubernetes string
	kubeconfig string
	kubelet    string
	stateDir   string
	addresses  string
	journalDir string
	cni        cniFlags
	metrics    metricsFlags
	logLevel   slog.Level
	logFormat  string

	scenario *simulation.Scenario // what simulate names; nil without it
}

// metricsFlags say what is measured, and how often.
type metricsFlags struct {
	traffic, errors, slow time.Duration
	devices, names        exporter.Filter
	compat                []string
	qpCounters            string
	qpsAtMost             int
}

func agentCommand() *cobra.Command {
	f := &agentFlags{}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run the agent of a node: metrics of its RDMA devices, networks and addresses of its pods",
		Long: `Run the agent of a node. It reads the node's RDMA devices in the background, finds
out which pods and workloads they belong to, and serves what it has to Prometheus
at /metrics. As root it sees into pods; with Kubernetes it knows their names, and
keeps the node's share of the addresses of SpiderIPPools for them. With --cni it is
also what the container runtime calls: it attaches pods to their networks.

It runs as a DaemonSet, as a systemd service (deploy/railhead-agent.service), or
on a simulated node: --simulate scenarios/healthy.yaml. A scenario with realNode:
true puts simulated RDMA on this node's own netdevs, for its own pods.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), endings()...)
			defer stop()
			if err := f.check(cmd); err != nil {
				return err
			}
			logger, err := f.logger(cmd)
			if err != nil {
				return err
			}
			return f.run(ctx, logger)
		},
	}
	f.add(cmd)
	return cmd
}

// endings are the signals that end the agent: also that the terminal is closed,
// unless it was started to outlive that.
func endings() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

func (f *agentFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.listen, "listen", []string{":5711"}, "addresses to serve on")
	flags.StringVar(&f.webConfig, "web.config.file", "", "TLS and basic authentication, in the format of Prometheus' exporter-toolkit; probes of /healthz and /readyz need the password too")
	flags.StringVar(&f.simulate, "simulate", "", "be the agent of a simulated node, or of simulated RDMA on this node, as a scenario describes it")
	flags.StringSliceVar(&f.rails, "rails", nil, "the rails in order, from 0, by netdev, RDMA device or PCI address (default: the PFs with RDMA, in PCI order)")
	flags.StringVar(&f.nodeName, "node-name", "", "what Kubernetes calls this node (default: the environment's NODE_NAME, else the host name)")
	flags.StringVar(&f.kubernetes, "kubernetes", "auto", `"auto": ask Kubernetes for the names of pods where the agent is in a cluster or has a kubeconfig; "off": pods show by their UID`)
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "how to reach Kubernetes from outside of a cluster")
	flags.StringVar(&f.kubelet, "pod-resources", podresources.Socket, "socket at which the kubelet says which pods have which devices; empty to not ask")
	flags.StringVar(&f.stateDir, "state-dir", "/run/railhead", "directory for what narrow counters have come to, so that a restart is not seen in them; empty to not keep it")
	flags.StringVar(&f.addresses, "addresses", "auto", `"auto": give this node's pods their addresses where Kubernetes is asked and nothing is simulated; "on": also where RDMA is simulated on this node; "off": give none`)
	flags.StringVar(&f.journalDir, "addresses-dir", "/var/lib/railhead/addresses", "directory for which pod has which address, on a disk that outlives the agent; no other agent may use it")
	f.cni.add(cmd)
	f.metrics.add(cmd)
	flags.TextVar(&f.logLevel, "log.level", slog.LevelInfo, "debug, info, warn or error")
	flags.StringVar(&f.logFormat, "log.format", "text", "text or json")
}

func (m *metricsFlags) add(cmd *cobra.Command) {
	flags, intervals := cmd.Flags(), exporter.DefaultIntervals()
	flags.DurationVar(&m.traffic, "metrics.interval.traffic", intervals[counters.Traffic], "how often bytes and packets are read")
	flags.DurationVar(&m.errors, "metrics.interval.errors", intervals[counters.Errors], "how often errors, congestion and states are read")
	flags.DurationVar(&m.slow, "metrics.interval.slow", intervals[counters.Slow], "how often optics, PCIe, configuration and resources are read")
	flags.StringVar(&m.devices.Include, "metrics.devices.include", "", "regular expression for whole names: RDMA devices to read (default: all)")
	flags.StringVar(&m.devices.Exclude, "metrics.devices.exclude", "", "regular expression for whole names: RDMA devices to leave alone")
	flags.StringVar(&m.names.Include, "metrics.include", "", "regular expression for whole names: metrics to export, such as rdma_port_.* (default: all)")
	flags.StringVar(&m.names.Exclude, "metrics.exclude", "", "regular expression for whole names: metrics to leave out")
	flags.StringSliceVar(&m.compat, "metrics.compat", nil, `"spiderpool", "node_exporter": also the names and labels of that exporter`)
	flags.IntVar(&m.qpsAtMost, "metrics.qps-at-most", attribution.DefaultQPSAtMost, "list the queue pairs of a device that has no more than these, for rdma_pod_qps; it costs a firmware command each; 0 to never")
	flags.StringVar(&m.qpCounters, "metrics.qp-counters", string(attribution.CountersOff),
		`"off"; "auto": let devices count each process apart; "bind": let them count each pod apart (changes a setting of the device, never one that an administrator made; while queue pairs are bound, each reading of a port costs a firmware command for each set of counters)`)
}

func (f *agentFlags) logger(cmd *cobra.Command) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: f.logLevel}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), options)), nil
	}
	return nil, fmt.Errorf("--log.format %q: want text or json", f.logFormat)
}

// run is the agent until ctx ends, which is no error.
func (f *agentFlags) run(ctx context.Context, logger *slog.Logger) error {
	saveMemory()
	config, simulated, err := f.config(logger)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if simulated != nil {
		defer simulated.Close()
		group.Go(func() error { return simulated.Run(ctx) })
	}
	a, err := agent.New(config)
	if err != nil {
		return err
	}
	group.Go(func() error { return a.Run(ctx) })
	group.Go(func() error { return settle(ctx, logger) })
	group.Go(func() error { return exporter.Serve(ctx, f.listen, f.webConfig, a.Handler(), logger) })
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
