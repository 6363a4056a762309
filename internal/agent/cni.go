package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/containernetworking/cni/libcni"
	"golang.org/x/sync/errgroup"

	"railhead/internal/agent/address"
	"railhead/internal/agent/cluster"
	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/cniinstall"
	"railhead/internal/cniserver"
	"railhead/internal/cniserver/delegate"
	"railhead/internal/ipam/journal"
	"railhead/internal/npwg"
)

// CNI says how the agent serves the node's container runtime. Paths are the
// node's own unless they say otherwise.
type CNI struct {
	Socket         string // where railhead-cni calls; this process sees it at the same path
	HostRoot       string // where this process sees the node's root; empty: its root is the node's
	BinDir         string // of plugins, such as /opt/cni/bin
	ConfDir        string // of networks, such as /etc/cni/net.d
	Program        string // the railhead-cni that is installed, as this process sees it
	AttachmentsDir string // of the records of what was attached, and of what is known of the cluster, as this process sees it
	Pod            string // name of the agent's own, in Config.Namespace; empty: it is in none, and never uninstalls itself
}

const (
	// socketCheck is how often is looked whether the socket can still be called.
	socketCheck = 5 * time.Second
	// seatCheck is how often is asked whether another agent has ended, whose place
	// this one takes.
	seatCheck = time.Second
	// servePause is how long after a fault the runtime is served again: metrics of
	// the node's devices go on meanwhile.
	servePause = 5 * time.Second
)

// networking is the agent's part that the container runtime calls.
type networking struct {
	config    Config
	addresses *address.Service
	cluster   *cluster.Cache
	log       *slog.Logger
	metrics   lateCollectors
	left      bool // by leave: it was uninstalled
	emptied   bool // by leave: nothing is attached, and none will be
}

// serveRuntime has the container runtime served, if the agent is to.
func (a *Agent) serveRuntime(config *Config) error {
	if config.CNI == nil {
		close(a.served)
		return nil
	}
	if a.addresses == nil {
		return errors.New("container runtime: pods are attached with their addresses, and the agent gives none")
	}
	known, err := cluster.New(cluster.Config{
		API: config.Kubernetes, Node: config.NodeName, Namespace: config.Namespace, Dir: config.CNI.AttachmentsDir, Log: config.Logger,
	})
	if err != nil {
		return fmt.Errorf("what the node knows of its cluster: %w", err)
	}
	a.networking = &networking{config: *config, addresses: a.addresses, cluster: known, log: config.Logger}
	a.sources = append(a.sources, outlive(known.Run, a.served), func(ctx context.Context) error {
		return a.networking.run(ctx, sync.OnceFunc(func() { close(a.served) }))
	})
	return nil
}

// run serves the runtime until ctx ends. Once no call needs anything any more,
// served is called.
func (r *networking) run(ctx context.Context, served func()) error {
	defer served()
	for {
		err := r.runOnce(ctx, served)
		if ctx.Err() != nil {
			return err
		}
		r.log.Error("the container runtime is not served, and will be tried again", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(servePause):
		}
	}
}

// runOnce serves the runtime until ctx ends, or until it cannot go on.
func (r *networking) runOnce(ctx context.Context, served func()) error {
	listener, err := await(ctx, r.log, "socket", cnicall.ErrInUse, func() (*cnicall.Listener, error) {
		return cnicall.Listen(r.config.CNI.Socket)
	})
	if err != nil {
		return fmt.Errorf("socket of the container runtime: %w", err)
	}
	defer listener.Close()
	records, disk, err := r.records(ctx)
	if err != nil {
		return err
	}
	defer disk.Close()
	defer records.Close()
	attacher, err := attach.New(attach.Config{Proc: r.proc()})
	if err != nil {
		return fmt.Errorf("attaching: %w", err)
	}
	defer attacher.Close()
	server, err := r.server(records, attacher)
	if err != nil {
		return err
	}
	r.metrics.set(server.Collectors())
	err = r.serve(ctx, listener, server)
	if ctx.Err() == nil {
		return err
	}
	served()
	return errors.Join(err, r.leave(ctx, records))
}

// serve runs the server and what keeps it reachable. Calls that are under way when
// ctx ends come to their end before the server does.
func (r *networking) serve(ctx context.Context, listener *cnicall.Listener, server *cniserver.Server) error {
	group, ctx := errgroup.WithContext(ctx)
	answered := make(chan struct{})
	group.Go(func() error { return outlive(server.Run, answered)(ctx) })
	group.Go(func() error {
		defer close(answered)
		return cnicall.Serve(ctx, listener, server.Handle, r.limits())
	})
	group.Go(func() error { return watch(ctx, listener) })
	group.Go(func() error { r.install(ctx); return nil })
	return group.Wait()
}

// limits are those of calls. Plugins of others that a call runs may call us for
// addresses, and are calls, too: with as many at once as there may be pods, these
// would wait for those that wait for them.
func (r *networking) limits() cnicall.Limits {
	const calls = 4096 // a node has some hundred pods; waiting costs little
	return cnicall.Limits{Calls: calls, Report: func(err error) { r.log.Warn("call of the container runtime", "error", err) }}
}

// records opens what is known to be attached, once no other agent has it.
func (r *networking) records(ctx context.Context) (*record.Store, *journal.Directory, error) {
	dir := r.config.CNI.AttachmentsDir
	disk, err := await(ctx, r.log, "attachments", journal.ErrHeld, func() (*journal.Directory, error) { return journal.OS(dir) })
	if err != nil {
		return nil, nil, fmt.Errorf("directory of attachments: %w", err)
	}
	records, err := record.Open(disk, record.File)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("attachments in %s: %w", dir, err), disk.Close())
	}
	return records, disk, nil
}

// server puts the server together.
func (r *networking) server(records *record.Store, attacher *attach.Attacher) (*cniserver.Server, error) {
	c := r.config.CNI
	plugins, err := delegate.New(delegate.Config{HostRoot: c.HostRoot, ConfDir: c.ConfDir, BinDirs: []string{c.BinDir}})
	if err != nil {
		return nil, err
	}
	boot, err := r.config.Node.FS().Sysctl("kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("which boot of the node this is: %w", err)
	}
	return cniserver.New(cniserver.Config{
		NodeName:  r.config.NodeName,
		Addresses: r.addresses,
		Cluster:   r.cluster,
		Attacher:  attacher,
		Records:   records,
		Delegate:  plugins,
		ClusterNetwork: func(file, name string) (*libcni.NetworkConfigList, error) {
			return cniinstall.ClusterNetwork{File: file, Name: name}.Load(r.seen(c.ConfDir))
		},
		ReadNAD:    r.cluster.ReadNAD,
		Files:      plugins.Files,
		BootID:     strings.TrimSpace(boot),
		NetNS:      r.seenNetNS,
		DeviceInfo: r.seen(npwg.DeviceInfoFolder),
		Logger:     r.log,
	})
}

// install keeps our program and network installed on the node until ctx ends.
func (r *networking) install(ctx context.Context) {
	r.installer().Run(ctx, func(state cniinstall.State, err error) {
		switch {
		case err != nil:
			r.log.Error("installing the CNI program and network", "error", err)
		case len(state.Problems) > 0:
			r.log.Warn("CNI program and network", "phase", state.Phase, "problems", state.Problems)
		default:
			r.log.Info("CNI program and network", "phase", state.Phase, "cluster_network", state.Cluster.File, "changed", state.Changed)
		}
	})
}

// proc is the node's procfs: that of a container has settings that cannot be
// written.
func (r *networking) proc() string { return r.seen("/proc") }

// watch ends with an error when the socket can no longer be called.
func watch(ctx context.Context, listener *cnicall.Listener) error {
	ticker := time.NewTicker(socketCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := listener.Check(); err != nil {
				return fmt.Errorf("socket of the container runtime: %w", err)
			}
		}
	}
}

// await tries to get what another agent has, until that agent has ended.
func await[T any](ctx context.Context, log *slog.Logger, what string, held error, get func() (T, error)) (T, error) {
	ticker := time.NewTicker(seatCheck)
	defer ticker.Stop()
	for told := false; ; {
		got, err := get()
		if !errors.Is(err, held) {
			return got, err
		}
		if !told {
			log.Info("waiting for another agent to end", "has", what, "error", err)
			told = true
		}
		select {
		case <-ctx.Done():
			return got, ctx.Err()
		case <-ticker.C:
		}
	}
}
