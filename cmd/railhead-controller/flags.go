package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"railhead/internal/controller"
)

// namespaceFile is where a pod finds the name of its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// flags is what an administrator says to the controller.
type flags struct {
	kubeconfig, namespace                       string
	webhookListen, metricsListen, healthListen  string
	webhookURL, webhookCertDir, service         string
	configMaps                                  []string
	cniConfigDir, ownerClusterRole              string
	leaderElect                                 bool
	leaseDuration, renewDeadline, retryInterval time.Duration
	logLevel                                    slog.Level
	logFormat                                   string
}

func (f *flags) add(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "how to reach Kubernetes from outside of a cluster")
	set.StringVar(&f.namespace, "namespace", "", "where its Lease, ConfigMap, Secret and Service are (default: the pod's own, else railhead-system)")
	set.StringVar(&f.webhookListen, "webhook-listen", ":5722", "address to serve webhooks on")
	set.StringVar(&f.metricsListen, "metrics-listen", ":5721", "address to serve metrics on; empty to not serve them")
	set.StringVar(&f.healthListen, "health-listen", ":5720", "address to serve /healthz and /readyz on; empty to not serve them")
	set.StringVar(&f.service, "service", controller.DefaultService, "Service by which the API server finds the webhooks")
	set.StringVar(&f.webhookURL, "webhook-url", "", `"https://host:port" at which the API server finds the webhooks, in the place of a Service`)
	set.StringVar(&f.webhookCertDir, "webhook-cert-dir", "", "directory with tls.crt, tls.key and ca.crt, as cert-manager keeps them (default: the controller makes certificates itself)")
	set.StringSliceVar(&f.configMaps, "config-map", nil, "ConfigMaps with settings, of which the first there is counts (default: spiderpool-conf,spiderpool-config)")
	set.StringVar(&f.cniConfigDir, "cni-config-dir", "", "directory with the CNI configuration of the node, from which to tell the cluster's network (default: ask the API alone)")
	set.StringVar(&f.ownerClusterRole, "owner-cluster-role", "", "ClusterRole with which the webhook configurations are deleted (default: they stay)")
	set.BoolVar(&f.leaderElect, "leader-elect", true, "let one replica lead; false where there is only one")
	set.DurationVar(&f.leaseDuration, "leader-lease-duration", controller.DefaultLeaseDuration, "after how long without a sign of the leader another takes over")
	set.DurationVar(&f.renewDeadline, "leader-renew-deadline", controller.DefaultRenewDeadline, "after how long without success a leader gives up")
	set.DurationVar(&f.retryInterval, "leader-retry-period", controller.DefaultRetryPeriod, "how often to renew the lease, or to try for it")
	set.TextVar(&f.logLevel, "log.level", slog.LevelInfo, "debug, info, warn or error")
	set.StringVar(&f.logFormat, "log.format", "text", "text or json")
}

// run is the controller until ctx ends.
func (f *flags) run(ctx context.Context, stderr io.Writer) error {
	log, err := f.logger(stderr)
	if err != nil {
		return err
	}
	// What client-go and controller-runtime log without being given a logger.
	klog.SetSlogLogger(log)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	options, err := f.options(log)
	if err != nil {
		return err
	}
	return controller.Run(ctx, options)
}

func (f *flags) logger(stderr io.Writer) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: f.logLevel}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(stderr, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(stderr, options)), nil
	}
	return nil, fmt.Errorf("--log.format %q: want text or json", f.logFormat)
}

func (f *flags) options(log *slog.Logger) (controller.Options, error) {
	config, err := f.cluster()
	if err != nil {
		return controller.Options{}, err
	}
	return controller.Options{
		Config:           config,
		Namespace:        cmp.Or(f.namespace, podNamespace(), "railhead-system"),
		WebhookListen:    f.webhookListen,
		MetricsListen:    f.metricsListen,
		HealthListen:     f.healthListen,
		WebhookURL:       f.webhookURL,
		Service:          f.service,
		CertDir:          f.webhookCertDir,
		ConfigMapNames:   f.configMaps,
		CNIConfigDir:     f.cniConfigDir,
		OwnerClusterRole: f.ownerClusterRole,
		LeaderElection:   f.leaderElect,
		LeaseDuration:    f.leaseDuration,
		RenewDeadline:    f.renewDeadline,
		RetryPeriod:      f.retryInterval,
		Log:              log,
	}, nil
}

// cluster says how to reach Kubernetes.
func (f *flags) cluster() (*rest.Config, error) {
	if f.kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
		return throttled(config), nil
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: outside of a cluster, say --kubeconfig", err)
	}
	return throttled(config), nil
}

// throttled has room for the requests of a start in a large cluster, and bounds those of a fault.
func throttled(config *rest.Config) *rest.Config {
	config.QPS, config.Burst = 100, 200
	return config
}

// podNamespace is the namespace of the pod that we are, "" outside of one.
func podNamespace() string {
	text, err := os.ReadFile(namespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
