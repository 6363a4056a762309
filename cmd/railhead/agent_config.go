package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"railhead/internal/agent"
	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/exporter"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/sysfs"
	"railhead/internal/simulation"
)

// intervalLeast is the shortest interval: below it, reading a card would begin
// before the last reading has ended.
const intervalLeast = 100 * time.Millisecond

// check refuses flags that make no sense, before anything is started.
func (f *agentFlags) check(cmd *cobra.Command) error {
	m := &f.metrics
	for name, interval := range map[string]time.Duration{"traffic": m.traffic, "errors": m.errors, "slow": m.slow} {
		if interval < intervalLeast {
			return fmt.Errorf("--metrics.interval.%s %s: want at least %s", name, interval, intervalLeast)
		}
	}
	switch {
	case m.qpsAtMost < 0:
		return fmt.Errorf("--metrics.qps-at-most %d: want 0 or more", m.qpsAtMost)
	case f.kubernetes != "auto" && f.kubernetes != "off":
		return fmt.Errorf("--kubernetes %q: want auto or off", f.kubernetes)
	case f.addresses != "auto" && f.addresses != "on" && f.addresses != "off":
		return fmt.Errorf("--addresses %q: want auto, on or off", f.addresses)
	case f.addresses == "on" && f.kubernetes == "off":
		return errors.New("--addresses=on --kubernetes=off: addresses are granted over Kubernetes, want only one of them")
	case f.addresses != "off" && !filepath.IsAbs(f.journalDir):
		return fmt.Errorf("--addresses-dir %q: want an absolute path, or --addresses=off", f.journalDir)
	case f.cni.check(f.addresses) != nil:
		return f.cni.check(f.addresses)
	case len(f.listen) == 0 || slices.Contains(f.listen, ""):
		return errors.New(`--listen "": want host:port or :port`)
	case f.simulate == "" && cmd.Flags().Changed("simulate"):
		return errors.New(`--simulate "": want a file, such as scenarios/healthy.yaml`)
	case f.simulate == "":
		return nil
	}
	return f.load(cmd)
}

// load reads the scenario. An invented node has all that flags could name.
func (f *agentFlags) load(cmd *cobra.Command) (err error) {
	if f.scenario, err = simulation.Load(f.simulate); err != nil {
		return fmt.Errorf("--simulate: %w", err)
	}
	switch {
	case f.scenario.RealNode:
		return nil
	case f.addresses == "on":
		return errors.New("--addresses=on: the Kubernetes of a simulated node grants none, want auto or off, or a scenario with realNode: true")
	case f.cni.serve == "on":
		return errors.New("--cni=on: a simulated node has no container runtime, want auto or off, or a scenario with realNode: true")
	}
	for _, name := range []string{"kubernetes", "kubeconfig", "pod-resources", "node-name"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s: a simulated node has a name, a kubelet and a Kubernetes of its own, leave it out", name)
		}
	}
	return nil
}

// config says of which node the agent is: the one it runs on, or a simulated
// one, which the caller runs and closes.
func (f *agentFlags) config(logger *slog.Logger) (agent.Config, *simulatedNode, error) {
	config := agent.Config{Rails: f.rails, Exporter: f.metrics.config(), Logger: logger, QPCounters: attribution.CounterPolicy(f.metrics.qpCounters)}
	config.QPSAtMost = cmp.Or(f.metrics.qpsAtMost, -1)
	if f.scenario == nil {
		config.Node, config.Exporter.StateDir = node.Running(sysfs.New("/")), f.stateDir
		return config, nil, f.surround(&config, logger)
	}
	s, err := simulate(f.scenario) // whose counters begin with the agent: nothing is kept
	if err != nil {
		return agent.Config{}, nil, fmt.Errorf("--simulate: %w", err)
	}
	config.Node = s.Node()
	if !f.scenario.RealNode {
		config.NodeName, config.Kubernetes, config.PodResources = s.NodeName(), s.RESTConfig(), s.PodResourcesSocket()
		return config, s, nil
	}
	if err := s.Unseen(); err != nil {
		logger.Warn("pods of the scenario may not be found", "error", err)
	}
	if err := f.surround(&config, logger); err != nil {
		return agent.Config{}, nil, errors.Join(err, s.Close())
	}
	return config, s, nil
}

// surround says what is around the kernel that we run on: the node's name, its
// kubelet and Kubernetes.
func (f *agentFlags) surround(config *agent.Config, logger *slog.Logger) error {
	hostname, err := os.Hostname()
	if err != nil {
		return err
	}
	config.NodeName = cmp.Or(f.nodeName, os.Getenv("NODE_NAME"), hostname)
	config.PodResources = f.kubelet
	if config.Kubernetes, err = f.cluster(logger); err != nil {
		return err
	}
	if err := f.giveAddresses(config); err != nil {
		return err
	}
	return f.serveCNI(config)
}

// giveAddresses says where the journal is if the agent is to give the pods of
// the node that we run on their addresses. A simulation on it has no part in
// that: pods, their namespaces and Kubernetes are those of the node.
func (f *agentFlags) giveAddresses(config *agent.Config) error {
	switch {
	case f.addresses == "on" && config.Kubernetes == nil:
		return errors.New("--addresses=on: addresses are granted over Kubernetes, and the agent is not in a cluster: want --kubeconfig")
	case f.addresses == "on", f.addresses == "auto" && f.scenario == nil:
		config.AddressesDir = f.journalDir
	}
	return nil
}

// cluster says how to reach Kubernetes; nil where the agent does without.
func (f *agentFlags) cluster(logger *slog.Logger) (*rest.Config, error) {
	switch {
	case f.kubernetes == "off":
		return nil, nil //nolint:nilnil // a node without Kubernetes is no error
	case f.kubeconfig != "":
		config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		logger.Info("not in a cluster and without --kubeconfig: pods show by their UID")
		return nil, nil //nolint:nilnil // a node without Kubernetes is no error
	}
	return config, err
}

func (m *metricsFlags) config() exporter.Config {
	config := exporter.Config{
		Intervals: [counters.Tiers]time.Duration{counters.Traffic: m.traffic, counters.Errors: m.errors, counters.Slow: m.slow},
		Devices:   m.devices,
		Metrics:   m.names,
		Version:   version(),
	}
	for _, mode := range m.compat {
		config.Compat = append(config.Compat, exporter.Compat(mode))
	}
	return config
}
