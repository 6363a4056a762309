// Package cluster knows what a node needs of the API to give pods their
// interfaces: its pods, networks, pools, the coordinator, settings, and itself.
//
// All of it is in memory: while the API server is away, what is known stays
// usable, and a pod that is known costs no request. Namespaces, and what is above
// a pod's controller, are read when a pod of theirs comes to the node, which is
// before it is attached; see [Cache.Namespace].
//
// It is kept on the node's disk, too. Where the API server is away when the agent
// starts, that is what is known until it is back: as if the agent had run on.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"railhead/internal/policy"
)

// Config is what a Cache is told.
type Config struct {
	API        *rest.Config // how the API server is asked
	Node       string       // name of the node's Node object
	Namespace  string       // of Railhead, which has the ConfigMap with settings; default: railhead-system
	ConfigMaps []string     // its names, of which the first that there is counts; default: spiderpool-conf, spiderpool-config
	Dir        string       // on the node's disk, where what is known is kept for the next run; empty: it is not
	Log        *slog.Logger // nil: nothing is logged
}

// Cache is what a node needs of the API. It is safe for concurrent use, and
// what it answers is shared: do not change it.
//
// It needs the rights of deploy/railhead-agent.yaml: to get, list and watch
// pods, nodes, the ConfigMaps, NetworkAttachmentDefinitions and the kinds of
// Spiderpool, to get namespaces, ReplicaSets and Jobs, to patch pods and to
// create Events.
type Cache struct {
	node    string
	log     *slog.Logger
	client  *client
	catalog *policy.Catalog
	kinds   []*kind
	links   *links

	pods, nads, nodes, coordinators *mirror
	pools                           *pools
	settings                        *settings
	owned                           owned
	namespaces                      namespaces
	above                           above

	disk  disk
	queue workqueue.TypedRateLimitingInterface[errand]
}

// New returns a Cache, which asks nothing before Run. The error is about config.
func New(config Config) (*Cache, error) {
	if config.Node == "" {
		return nil, errors.New("name of the node is empty, want that of its Node object")
	}
	if config.API == nil {
		return nil, errors.New("no access to Kubernetes is configured")
	}
	if config.Namespace == "" {
		config.Namespace = "railhead-system"
	}
	if len(config.ConfigMaps) == 0 {
		config.ConfigMaps = []string{policy.ConfigMapName, policy.ConfigMapOldName}
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	clients, err := newClient(config.API, config.Namespace)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	c := &Cache{
		node: config.Node, log: config.Log, client: clients, catalog: policy.NewCatalog(),
		links:      &links{log: config.Log},
		disk:       newDisk(config.Dir),
		pools:      &pools{seen: map[string]seen{}},
		owned:      owned{by: map[string]string{}, count: map[string]int{}},
		namespaces: namespaces{known: map[string]namespace{}},
		above:      above{known: map[types.UID][]policy.Application{}},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[errand](time.Second, time.Minute)),
	}
	c.settings = newSettings(c.catalog, config.ConfigMaps, config.Log)
	c.kinds = c.newKinds(config.ConfigMaps)
	return c, nil
}

// Run keeps everything up to date until ctx ends, and returns its error. It runs
// once.
func (c *Cache) Run(ctx context.Context) error {
	// What client-go says of the API server being away, links tell already.
	quiet := klog.NewContext(ctx, logr.Discard())
	var wg sync.WaitGroup
	for _, k := range c.kinds {
		wg.Go(func() { k.follow(quiet) })
	}
	wg.Go(func() { c.runErrands(ctx) })
	c.keep(ctx)
	<-ctx.Done()
	c.queue.ShutDown()
	wg.Wait()
	c.keepLast()
	return ctx.Err()
}

// Ready returns what was never read, and why: a definition that is not installed,
// a right that is not given, an API server that does not answer; nil where all
// was, be it by an earlier run. The others are usable all the same, and stay so
// when the API server goes.
func (c *Cache) Ready() error {
	var missing []string
	for _, k := range c.kinds {
		if why := k.whyNotRead(); why != nil {
			missing = append(missing, why.Error())
		}
	}
	if missing == nil {
		return nil
	}
	return errors.New("not read yet: " + strings.Join(missing, "; "))
}

// Current returns why the pods of this node were not read in this run; nil where they
// were. What is known of them is as an earlier run was told.
func (c *Cache) Current() error {
	for _, k := range c.kinds {
		if k.store == c.pods {
			return k.whyNotCurrent()
		}
	}
	return nil
}

// Catalog has pools, reserved addresses, coordinators and settings, which is what
// internal/ipam/selection asks for. It has no statuses, and so does not know who has
// which address; and neither SpiderSubnets nor SpiderMultusConfigs.
func (c *Cache) Catalog() *policy.Catalog { return c.catalog }

// keyOf names an object.
func keyOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// title is a name as people write it.
func title(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// absence is that an object is not there. It is the API's error for that, with
// another text.
type absence struct {
	text string
	err  error // apierrors.IsNotFound
}

func (a *absence) Error() string { return a.text }

func (a *absence) Unwrap() error { return a.err }
