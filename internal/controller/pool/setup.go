// Package pool keeps the status of SpiderIPPools: how many addresses they have
// and pods use, which, and whether they serve; and it lets a deleted pool go once
// its addresses are free. It gives no addresses and takes none back.
package pool

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// Watch is a source of events of a kind, each after the Catalog has it.
type Watch = func(kind client.Object, h handler.EventHandler) source.Source

// Setup adds the controller of pools.
func Setup(mgr ctrl.Manager, catalog *policy.Catalog, watch Watch) error {
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Catalog: catalog, Recorder: mgr.GetEventRecorder("railhead-controller")}
	c, err := controller.New("pool", mgr, controller.Options{Reconciler: r})
	if err != nil {
		return err
	}
	for _, s := range []source.Source{
		watch(&v2beta1.SpiderIPPool{}, ofPools()),
		watch(&v2beta1.SpiderEndpoint{}, ofEndpoints()),
		watch(&v1alpha1.PoolLedger{}, ofLedgers()),
		watch(&v2beta1.SpiderSubnet{}, ofRules()),
		watch(&corev1.ConfigMap{}, ofRules()),
	} {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("pools: %w", err)
		}
	}
	return nil
}
