// Package network makes of each SpiderMultusConfig the NetworkAttachmentDefinition
// that CNI plugins read, keeps it as it must be, and tells in the status of the
// first what became of it. What is in a NetworkAttachmentDefinition is
// internal/policy/nad; one that belongs to somebody else is never touched.
package network

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// Watch is a source of events of a kind, each after the Catalog has it.
type Watch = func(kind client.Object, h handler.EventHandler) source.Source

// Setup adds the controller of networks.
func Setup(mgr ctrl.Manager, catalog *policy.Catalog, watch Watch) error {
	r := &Reconciler{Client: mgr.GetClient(), Catalog: catalog, Recorder: mgr.GetEventRecorder("railhead-controller")}
	c, err := controller.New("network", mgr, controller.Options{Reconciler: r})
	if err != nil {
		return err
	}
	for _, s := range []source.Source{
		watch(&v2beta1.SpiderMultusConfig{}, r.ofConfigs()),
		watch(&cniv1.NetworkAttachmentDefinition{}, r.ofDefinitions()),
	} {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("networks: %w", err)
		}
	}
	return nil
}
