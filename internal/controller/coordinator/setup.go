package coordinator

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// Watch is a source of events of a kind, each after the Catalog has it.
type Watch = func(kind client.Object, h handler.EventHandler) source.Source

// Options of Setup.
type Options struct {
	// Watch is for SpiderCoordinators; nil: the manager's cache.
	Watch Watch
	// Default is the name of the SpiderCoordinator that is created if there is none at all; "": none is.
	Default string
	// CNIConfigDir is a directory with the nodes' CNI configuration, which then says which network the cluster has; "": the API alone does.
	CNIConfigDir string
	// Cilium is where cilium's ConfigMap is, by default kube-system/cilium-config.
	Cilium types.NamespacedName
	// Resync is how often everything is looked up again, by default ten minutes.
	Resync time.Duration
}

// debounce gathers events of one change of the cluster, such as a new node.
const debounce = 3 * time.Second

// Setup adds the controller of SpiderCoordinators.
func Setup(mgr ctrl.Manager, catalog *policy.Catalog, o Options) error {
	if o.Resync == 0 {
		o.Resync = 10 * time.Minute
	}
	if o.Cilium.Name == "" {
		o.Cilium = types.NamespacedName{Namespace: systemNamespace, Name: "cilium-config"}
	}
	if o.Watch == nil {
		o.Watch = func(kind client.Object, h handler.EventHandler) source.Source {
			return source.Kind(mgr.GetCache(), kind, h)
		}
	}
	clients, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("watch ConfigMaps: %w", err)
	}
	r := &reconciler{
		client:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		catalog:  catalog,
		recorder: mgr.GetEventRecorder("railhead-controller"),
		resync:   o.Resync,
		fallback: o.Default,
		reader: reader{
			live: mgr.GetAPIReader(), cilium: o.Cilium, cni: directory(o.CNIConfigDir),
			nodes: func(ctx context.Context) ([]corev1.Node, error) { return listNodes(ctx, mgr) },
		},
	}
	c, err := controller.New("coordinator", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: 1})
	if err != nil {
		return err
	}
	r.watches = newWatches(c, mgr, r.all)
	for _, s := range []source.Source{
		o.Watch(&v2beta1.SpiderCoordinator{}, &handler.EnqueueRequestForObject{}),
		atStart(o.Default),
		configMap(clients, types.NamespacedName{Namespace: systemNamespace, Name: "kubeadm-config"}, r.all),
		configMap(clients, o.Cilium, r.all),
	} {
		if err := c.Watch(s); err != nil {
			return err
		}
	}
	return nil
}

// directory is the files of a directory, nil if none is named.
func directory(path string) fs.FS {
	if path == "" {
		return nil
	}
	return os.DirFS(path)
}

// listNodes lists nodes, from the cache once it has them. Asking for it starts
// that, and until then, or for ever where the role does not allow to watch, the
// API server is asked page by page.
func listNodes(ctx context.Context, mgr ctrl.Manager) ([]corev1.Node, error) {
	var nodes corev1.NodeList
	informer, err := mgr.GetCache().GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false))
	if err == nil && informer.HasSynced() {
		err := mgr.GetClient().List(ctx, &nodes, client.UnsafeDisableDeepCopy)
		return nodes.Items, err
	}
	return listAll(ctx, mgr.GetAPIReader())
}

// listAll lists nodes from the API server.
func listAll(ctx context.Context, live client.Reader) ([]corev1.Node, error) {
	const page = 250
	var all []corev1.Node
	next := ""
	for {
		var nodes corev1.NodeList
		if err := live.List(ctx, &nodes, client.Limit(page), client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range nodes.Items {
			all = append(all, *slimNode(&nodes.Items[i]))
		}
		if next = nodes.Continue; next == "" {
			return all, nil
		}
	}
}

// CacheByObject has the cache of a manager keep of nodes what is read of them.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: func(object any) (any, error) {
		if n, ok := object.(*corev1.Node); ok {
			return slimNode(n), nil
		}
		return object, nil
	}}}
}

// slimNode is what is read of a node. The cache's objects are never written.
func slimNode(n *corev1.Node) *corev1.Node {
	slim := &corev1.Node{}
	slim.Name, slim.UID, slim.ResourceVersion = n.Name, n.UID, n.ResourceVersion
	slim.Spec.PodCIDR, slim.Spec.PodCIDRs = n.Spec.PodCIDR, n.Spec.PodCIDRs
	slim.Labels, slim.Spec.Taints = n.Labels, n.Spec.Taints // for those who give nodes addresses
	for _, key := range argsAnnotations() {
		if value, ok := n.Annotations[key]; ok {
			if slim.Annotations == nil {
				slim.Annotations = map[string]string{}
			}
			slim.Annotations[key] = value
		}
	}
	return slim
}
