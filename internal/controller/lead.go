package controller

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"railhead/internal/controller/address"
	"railhead/internal/controller/coordinator"
	"railhead/internal/controller/network"
	"railhead/internal/controller/pool"
	"railhead/internal/controller/subnet"
	"railhead/internal/webhook/registration"
)

const (
	leaseName = "railhead-controller"
	// stopTimeout bounds how long reconciles are waited for at the end.
	stopTimeout = 3 * time.Second
	// leaveTimeout bounds giving back the lease, too, which an API server that does
	// not answer would hold up for longer than the five seconds that Run has.
	leaveTimeout = 4500 * time.Millisecond
)

// admitAndLead serves webhooks and stands for election. All objects are known.
func (c *controller) admitAndLead(ctx context.Context, objects cache.Cache) error {
	mgr, err := c.manager(objects)
	if err != nil {
		return err
	}
	if err := c.admission.setup(mgr); err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	if err := c.controllers(mgr); err != nil { //nolint:contextcheck // indexes are added to what runs by another context
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.admission.serve(ctx) })
	group.Go(func() error {
		defer c.fence.shut() // reconciles that lost their lease are not waited for
		return within(ctx, leaveTimeout, c.Log, mgr.Start)
	})
	return group.Wait()
}

// within runs something, and leaves it alone when ctx has ended for that long. That
// is only logged: the end is one that was asked for.
func within(ctx context.Context, most time.Duration, log *slog.Logger, run func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(most):
		log.Warn("the lease was not given back: another replica leads once it has run out", "within", most)
		return ctx.Err()
	}
}

// cacheOptions keep of each object what is read of it.
func (c *controller) cacheOptions() cache.Options {
	kinds := subnet.CacheByObject()
	maps.Copy(kinds, coordinator.CacheByObject())
	maps.Copy(kinds, registration.CacheByObject())
	return cache.Options{Scheme: c.scheme, DefaultTransform: cache.TransformStripManagedFields(), ByObject: kinds}
}

// manager runs controllers as the leader. Writes of its clients end with the lease.
func (c *controller) manager(objects cache.Cache) (ctrl.Manager, error) {
	options := ctrl.Options{
		Scheme:   c.scheme,
		Logger:   logr.FromSlogHandler(c.Log.Handler()),
		NewCache: func(*rest.Config, cache.Options) (cache.Cache, error) { return startedCache{objects}, nil },
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &rbacv1.ClusterRole{}},
		}},
		Metrics:                       metricsserver.Options{BindAddress: "0"}, // served here, with what is ours
		HealthProbeBindAddress:        "0",                                     // likewise, and earlier
		LeaderElection:                c.LeaderElection,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &c.LeaseDuration,
		RenewDeadline:                 &c.RenewDeadline,
		RetryPeriod:                   &c.RetryPeriod,
		GracefulShutdownTimeout:       new(stopTimeout),
		// A process may run more than one controller, as tests do.
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
	if c.LeaderElection {
		lock, err := c.lock()
		if err != nil {
			return nil, err
		}
		options.LeaderElectionResourceLockInterface = lock
	}
	mgr, err := ctrl.NewManager(c.fenced(), options)
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	return briefManager{mgr}, nil
}

// fenced is access to Kubernetes that writes only as the leader.
func (c *controller) fenced() *rest.Config {
	fenced := rest.CopyConfig(c.Config)
	fenced.Wrap(c.fence.around)
	return fenced
}

// lock is the Lease that the leader holds, reached past the fence.
func (c *controller) lock() (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	identity := resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, c.Namespace, leaseName, identity, c.Config, c.RenewDeadline)
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w", c.Namespace, leaseName, err)
	}
	return fencedLock{lock, c.fence}, nil
}

// controllers adds what only the leader does.
func (c *controller) controllers(mgr ctrl.Manager) error {
	recorder := mgr.GetEventRecorder(leaseName)
	if err := mgr.Add(leaderOnly(func(ctx context.Context) error { return c.settings.report(ctx, recorder) })); err != nil {
		return err
	}
	if err := pool.Setup(mgr, c.catalog, c.feed.watch); err != nil {
		return fmt.Errorf("controller of pools: %w", err)
	}
	if err := network.Setup(mgr, c.catalog, c.feed.watch); err != nil {
		return fmt.Errorf("controller of networks: %w", err)
	}
	if err := subnet.Setup(mgr, c.catalog, subnet.Options{Watch: c.feed.watch, Registry: c.registry, Changes: c.subnetChanges}); err != nil {
		return fmt.Errorf("controller of subnets: %w", err)
	}
	if err := address.Setup(mgr, c.catalog, address.Options{Watch: c.feed.watch, Registry: c.registry, Changes: c.addressChanges, Log: c.Log}); err != nil {
		return fmt.Errorf("addresses: %w", err)
	}
	if err := coordinator.Setup(mgr, c.catalog, coordinator.Options{Watch: c.feed.watch, Default: "default", CNIConfigDir: c.CNIConfigDir}); err != nil {
		return fmt.Errorf("controller of coordinators: %w", err)
	}
	return nil
}

// leaderOnly is a task of the leader.
func leaderOnly(run func(context.Context) error) manager.Runnable { return manager.RunnableFunc(run) }

// startedCache is a cache that runs already, for a manager that would start it.
type startedCache struct{ cache.Cache }

// Start implements cache.Cache.
func (startedCache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
