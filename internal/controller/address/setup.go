package address

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"railhead/internal/policy"
)

// Watch is a source of events of a kind, each after the Catalog has it.
type Watch = func(kind client.Object, h handler.EventHandler) source.Source

// Options of Setup.
type Options struct {
	Watch Watch
	// Registry gets the metrics railhead_addresses_*; nil: none does.
	Registry prometheus.Registerer
	// Changes has an event whenever the Catalog's configuration is another; it may be nil.
	Changes <-chan event.GenericEvent
	Log     *slog.Logger
	// Doubt is how far apart two observations are at least by which something is
	// gone. By default half a minute.
	Doubt time.Duration
	// Gather is how long a round waits for more to do. By default two milliseconds.
	Gather time.Duration
}

const (
	defaultDoubt  = 30 * time.Second
	defaultGather = 2 * time.Millisecond
	// requestMost bounds a request: one that is not answered must not hold up a
	// round for good. What it wrote is read again.
	requestMost = 15 * time.Second
)

// Setup adds the giver of addresses, which runs while this replica leads.
func Setup(mgr ctrl.Manager, catalog *policy.Catalog, o Options) error {
	api, err := direct(mgr)
	if err != nil {
		return err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Doubt, o.Gather = cmp.Or(o.Doubt, defaultDoubt), cmp.Or(o.Gather, defaultGather)
	metrics, err := newMetrics(o.Registry, catalog.Usage)
	if err != nil {
		return err
	}
	return mgr.Add(&giver{
		Options: o, catalog: catalog, cache: mgr.GetClient(), api: api,
		recorder: mgr.GetEventRecorder("railhead-controller"), metrics: metrics,
	})
}

// direct reads live and writes past the limit of requests that the manager's
// client has: rounds bound themselves. The fence of the manager's access holds.
func direct(mgr ctrl.Manager) (client.Client, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS, config.RateLimiter, config.Timeout = -1, nil, requestMost
	c, err := client.New(config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("access to Kubernetes: %w", err)
	}
	return c, nil
}
