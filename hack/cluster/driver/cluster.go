package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"railhead/hack/cluster/binaries"
	"railhead/hack/cluster/box"
	"railhead/hack/cluster/fabric"
	"railhead/hack/cluster/image"
	"railhead/hack/cluster/pki"
	"railhead/hack/cluster/plan"
)

// Options are what a cluster is to be.
type Options struct {
	plan.Options
	Dir      Dir       // where its state is; see DefaultDir
	Progress io.Writer // gets a line a step; nil is silence
}

// Cluster is a running cluster. Its methods may be called at the same time.
type Cluster struct {
	dir      Dir
	plan     *plan.Cluster
	keys     *pki.PKI
	began    time.Time
	progress progress
	release  func() error // of the directory

	programs *binaries.Set
	images   []image.Image
	machines map[string]*machine
	fabric   *fabric.Fabric
	api      string // where the API server is a port of 127.0.0.1

	mu         sync.Mutex
	closed     bool
	forwarders []*forwarder
}

// Init is for the first statement of main, or of TestMain: it takes over when
// this program was started as the first process of a machine. Else it returns.
func Init() { box.Init() }

// Up starts a cluster and returns when its nodes are ready. If it fails, or
// the context ends, nothing is left.
func Up(ctx context.Context, o Options) (_ *Cluster, err error) {
	p, err := plan.New(o.Options)
	if err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("a cluster needs root")
	}
	release, err := o.Dir.acquire()
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		dir: o.Dir, plan: p, began: time.Now(), release: release,
		progress: progress{out: o.Progress, began: time.Now()},
		machines: map[string]*machine{},
	}
	c.fabric = fabric.New(p, c.NetNS)
	if err := c.up(ctx); err != nil {
		return nil, errors.Join(because(ctx, err), c.Close())
	}
	return c, nil
}

func (c *Cluster) up(ctx context.Context) error {
	if err := c.prepare(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, errSlow)
	defer cancel()
	if err := c.machines[plan.Fabric].start(ctx); err != nil {
		return err
	}
	ctx, stop := c.whileFabric(ctx)
	defer stop()
	return because(ctx, c.start(ctx))
}

// startLimit is how long a cluster may take to start once everything is built.
// It is far more than any takes.
const startLimit = 15 * time.Minute

var errSlow = fmt.Errorf("the cluster is not ready after %v", startLimit)

// start starts everything but the fabric.
func (c *Cluster) start(ctx context.Context) error {
	// Nodes do not wait for the control plane: their components do.
	all, each := errgroup.WithContext(ctx)
	all.Go(func() error { return c.startControlPlane(each) })
	for _, n := range c.plan.Nodes {
		all.Go(func() error { return c.machines[n.Name].start(each) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	want := len(c.plan.Nodes)
	if err := c.awaitNodes(ctx, want); err != nil {
		return err
	}
	c.progress.say("%d nodes are ready", want)
	return nil
}

// prepare gets everything that no machine is needed for.
func (c *Cluster) prepare(ctx context.Context) (err error) {
	c.progress.say("programs")
	if c.programs, err = binaries.Ensure(ctx, &c.progress); err != nil {
		return err
	}
	c.progress.say("images")
	config, err := c.imageConfig()
	if err != nil {
		return err
	}
	if c.images, err = image.Build(ctx, config); err != nil {
		return err
	}
	c.progress.say("certificates")
	if c.keys, err = pki.New(c.plan, time.Now()); err != nil {
		return err
	}
	return c.design()
}

// Dir is the cluster's directory.
func (c *Cluster) Dir() Dir { return c.dir }

// Plan is what the cluster consists of.
func (c *Cluster) Plan() *plan.Cluster { return c.plan }

// RESTConfig leads to the API server as the administrator.
func (c *Cluster) RESTConfig() *rest.Config {
	return &rest.Config{
		Host: "https://" + c.api,
		QPS:  -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.keys.CA.Cert, CertData: c.keys.Admin.Cert, KeyData: c.keys.Admin.Key,
		},
	}
}

func (c *Cluster) nodeNames() string {
	var names []string
	for _, n := range c.plan.Nodes {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}
