// Package controller is the controller of a cluster: it puts together what
// reads the cluster's objects, admits them, makes networks of them and counts
// addresses, and runs it. Every replica admits; one, the leader, writes.
//
// It decides nothing itself: what objects mean is internal/policy, and what
// becomes of each kind is a package of its own below this one.
package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"railhead/internal/policy"
	"railhead/internal/webhook"
)

// controller is one replica. It is made and run once.
type controller struct {
	Options
	scheme     *runtime.Scheme
	catalog    *policy.Catalog
	feed       *feed
	settings   *settings
	namespaces *webhook.Namespaces
	// Each has an event when the settings are others: of subnets, and of addresses.
	subnetChanges, addressChanges <-chan event.GenericEvent
	fence                         *fence
	direct                        client.Client // reads live, and writes whether leader or not: for certificates
	admission                     *admission
	health                        *health
	registry                      *prometheus.Registry
}

// Run is a replica of the controller until ctx ends, which is no error. It
// returns within five seconds of that, and at once when it was the leader and
// is so no more: then it has stopped writing, and the process should end too.
// It needs the rights of deploy/railhead-controller.yaml.
func Run(ctx context.Context, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	c, err := newController(o)
	if err != nil {
		return err
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return listenAndServe(running, o.HealthListen, c.health.handler()) })
	group.Go(func() error { return listenAndServe(running, o.MetricsListen, metricsHandler(c.registry)) })
	group.Go(func() error { return c.work(running) })
	return unlessTold(ctx, group.Wait())
}

// unlessTold is an error, unless it is only that ctx has ended. While ctx has not,
// what says that it was canceled should have gone on.
func unlessTold(ctx context.Context, err error) error {
	if told := ctx.Err(); told != nil && errors.Is(err, told) {
		return nil
	}
	return err
}

func newController(o Options) (*controller, error) {
	o.Config = rest.CopyConfig(o.Config)
	o.Config.WarningHandler = warnings{o.Log}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c := &controller{
		Options:  o,
		scheme:   scheme,
		catalog:  policy.NewCatalog(),
		health:   newHealth("the API server"),
		fence:    newFence(o.LeaderElection, o.LeaseDuration),
		registry: prometheus.NewRegistry(),
	}
	if c.direct, err = client.New(o.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("access to Kubernetes: %w", err)
	}
	c.namespaces = webhook.NewNamespaces(c.readNamespace)
	c.settings = newSettings(c.catalog, o.ConfigMapNames, o.Log)
	c.subnetChanges, c.addressChanges = c.settings.changes(), c.settings.changes()
	if c.admission, err = c.newAdmission(); err != nil {
		return nil, err
	}
	c.feed = newFeed(c.catalog, c.settings, c.namespaces)
	return c, c.register()
}

// warnings of the API server are about names that users know and that we cannot
// change, such as the finalizer of pools, and come with each write.
type warnings struct{ log *slog.Logger }

// HandleWarningHeader implements rest.WarningHandler.
func (w warnings) HandleWarningHeader(_ int, _, text string) {
	w.log.Debug("the API server warns", "text", text)
}

// readNamespace asks for the annotations of a namespace that the watch did not
// tell of yet.
func (c *controller) readNamespace(ctx context.Context, name string) (map[string]string, error) {
	namespace := namespaceMetadata()
	err := c.direct.Get(ctx, client.ObjectKey{Name: name}, namespace)
	return namespace.Annotations, err
}

// work goes from one precondition to the next: no request is admitted, and
// nothing written, before everything there is has been read.
func (c *controller) work(ctx context.Context) error {
	kinds, err := lookFor(c.Config)
	if err != nil {
		return err
	}
	if err := awaitKinds(ctx, kinds, c.health, c.Log); err != nil {
		return err
	}
	objects, err := cache.New(c.Config, c.cacheOptions())
	if err != nil {
		return fmt.Errorf("cache of objects: %w", err)
	}
	configMaps, err := configMapInformers(c.Config, c.Namespace, c.ConfigMapNames)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return objects.Start(ctx) })
	for _, informer := range configMaps {
		group.Go(func() error { informer.RunWithContext(ctx); return nil })
	}
	group.Go(func() error {
		c.health.wait("the objects of the cluster to be read")
		if err := c.feed.start(ctx, objects, configMaps); err != nil {
			return err
		}
		c.settings.started()
		return c.admitAndLead(ctx, objects)
	})
	return group.Wait()
}

// Options say which cluster it is the controller of, and how it is reached.
type Options struct {
	Config    *rest.Config
	Namespace string // its own: of its Lease, ConfigMap, Secret and Service

	WebhookListen string // host:port
	MetricsListen string // host:port; empty: not served
	HealthListen  string // host:port; empty: not served
	// WebhookURL is where the API server finds the webhooks, such as
	// "https://10.0.0.1:5722"; empty: by the Service.
	WebhookURL string
	Service    string // default: railhead-controller
	// CertDir has tls.crt, tls.key and ca.crt, which somebody else renews; empty:
	// certificates are made and kept in a Secret.
	CertDir string

	// ConfigMapNames are where settings are looked for, in this order; default:
	// spiderpool-conf, spiderpool-config.
	ConfigMapNames []string
	// CNIConfigDir has the CNI configuration of the node, from which the cluster's
	// network is told; empty: the API alone tells.
	CNIConfigDir string
	// OwnerClusterRole is the ClusterRole with which webhook configurations go; empty: they stay.
	OwnerClusterRole string

	LeaderElection                            bool          // false: there is no other replica
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration // defaults: 15 s, 10 s, 2 s

	Log *slog.Logger // nil: nothing is logged
}
