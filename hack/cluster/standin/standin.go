// Package standin stands in for many nodes at once: one process registers them
// with the API server, keeps their leases, and runs every pod bound to one of
// them as a bare network namespace that CNI plugins and device plugins are
// asked to fill, as a kubelet and a container runtime ask them. There are no
// containers and no processes in a pod. It shows how what sits beside kubelets
// scales, not how pods behave.
package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// MaxNodes is how many ports a bridge of the kernel has room for, with some to spare for others.
const MaxNodes = 1000

// Options say how many nodes there are and how they reach each other and the API server.
type Options struct {
	Nodes      int      // 1 to MaxNodes
	Kubeconfig string   // of an administrator of the cluster
	Dir        string   // for files, sockets and namespaces of the nodes; emptied before and after
	Bridge     string   // in our network namespace: eth0 of every node leads to it
	IPv4, IPv6 bool     // families of nodes and pods, IPv4 first
	Plugins    []string // directories with CNI plugins
	// Conflist is the path of a CNI configuration list as a template of Go for a Node; empty: a bridge with host-local.
	Conflist string
	Taint    bool // keep away pods that do not tolerate the taint Label
	// Parallel bounds how many pods start or end at once; 0: four for each processor. Plugins are programs, and more of
	// them only wait for a processor.
	Parallel int
	Progress io.Writer    // a line when something changed, at most one a second; nil is silence
	Log      *slog.Logger // what was tried in vain; nil is silence
}

// Run registers the nodes and runs their pods until the context ends, which is no error. Then it removes the nodes and
// everything of them on this machine without asking any plugin: to those it is a power failure. It needs root, and
// leaves alone what is not below Dir or connected to Bridge. What an earlier run that was killed left goes first.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	client, err := connect(o.Kubeconfig)
	if err != nil {
		return err
	}
	return stand(ctx, o, client)
}

// stand is Run with a client and options that are complete.
func stand(ctx context.Context, o Options, client kubernetes.Interface) (err error) {
	f := newFleet(o, client)
	if err := f.ground.clear(); err != nil {
		return fmt.Errorf("leftovers of an earlier run: %w", err)
	}
	defer func() { err = errors.Join(err, f.close(context.WithoutCancel(ctx)), f.ground.clear()) }()
	if err := f.setUp(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	return unlessEnded(ctx, f.run(ctx))
}

// unlessEnded is the error, unless it came of the end that was asked for.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

func (o *Options) check() error {
	var errs []error
	if o.Nodes < 1 || o.Nodes > MaxNodes {
		errs = append(errs, fmt.Errorf("nodes %d: want 1 to %d", o.Nodes, MaxNodes))
	}
	if !filepath.IsAbs(o.Dir) || filepath.Clean(o.Dir) == "/" {
		errs = append(errs, fmt.Errorf("directory %q: want an absolute path of its own", o.Dir))
	}
	if !o.IPv4 && !o.IPv6 {
		errs = append(errs, errors.New("neither IPv4 nor IPv6: want at least one"))
	}
	if len(o.Plugins) == 0 {
		errs = append(errs, errors.New("no directory with CNI plugins"))
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Parallel <= 0 {
		o.Parallel = 4 * runtime.NumCPU()
	}
	return errors.Join(errs...)
}

// connect makes a client for many small requests: in the compact form, and as fast as the server takes them. What
// bounds them is how many pods start or end at once.
func connect(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.UserAgent = "railhead-standin"
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	return client, nil
}
