package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
)

// kind is a collection of objects that is watched.
type kind struct {
	title  string // as people know it
	asked  questions
	sample runtime.Object // of the type that comes
	store  *mirror
	link   *link

	// again makes an object that the store does not keep, of what others do; nil
	// where they have none.
	again func(name string) metav1.Object
}

func poolResource() schema.GroupVersionResource {
	return v2beta1.GroupVersion.WithResource("spiderippools")
}

// newKinds are all that are watched. Of Kubernetes' own kinds that is what is of
// this node alone. SpiderMultusConfigs and SpiderSubnets are not read: what they
// are for, the controller makes NetworkAttachmentDefinitions and pools of.
func (c *Cache) newKinds(configMaps []string) []*kind {
	all := fields.Everything()
	own := func(field string) fields.Selector { return fields.OneTermEqualSelector(field, c.node) }
	c.pods = newMirror(trimPod, c.arrived, c.left)
	c.nads = newMirror(trimNAD, nil, nil)
	c.nodes = newMirror(trimNode, nil, nil)
	c.coordinators = newMirror(trimCoordinator, c.pass, c.passGone(&v2beta1.SpiderCoordinator{}))
	pools := newMirror(trimPool, c.passPool, c.passPoolGone)
	pools.keep = false // the Catalog does
	reserved := newMirror(trimMeta, c.pass, c.passGone(&v2beta1.SpiderReservedIP{}))
	c.pools.whole, c.pools.metadata = of(c.client.spider, poolResource().Resource, "", all), metadataOf(c.client.reader.Resource(poolResource()), all)
	c.pools.get = c.client.getPool
	list := []*kind{
		{title: "Pods of this node", asked: metadataOf(c.client.reader.Resource(podResource()), own("spec.nodeName")), sample: &metav1.PartialObjectMetadata{}, store: c.pods},
		{title: "Node " + c.node, asked: of(c.client.core, "nodes", "", own("metadata.name")), sample: &node{}, store: c.nodes},
		{title: "NetworkAttachmentDefinitions", asked: of(c.client.networks, "network-attachment-definitions", "", all), sample: &cniv1.NetworkAttachmentDefinition{}, store: c.nads},
		{title: "SpiderCoordinators", asked: of(c.client.spider, "spidercoordinators", "", all), sample: &v2beta1.SpiderCoordinator{}, store: c.coordinators},
		{title: "SpiderIPPools", asked: questions{c.pools.whole.list, c.pools.watch}, sample: &v2beta1.SpiderIPPool{}, store: pools, again: c.poolAgain},
		{title: "SpiderReservedIPs", asked: of(c.client.spider, "spiderreservedips", "", all), sample: &v2beta1.SpiderReservedIP{}, store: reserved},
	}
	for _, name := range configMaps {
		list = append(list, &kind{
			title: "ConfigMap " + c.client.namespace + "/" + name, sample: &configMap{},
			asked: of(c.client.core, "configmaps", c.client.namespace, fields.OneTermEqualSelector("metadata.name", name)),
			store: newMirror(trimConfigMap, c.settings.put, c.settings.drop),
		})
	}
	for _, k := range list {
		k.link = &link{of: k.title, all: c.links}
		k.store.news = c.disk.note
	}
	return list
}

// object is one of the API.
type object interface {
	metav1.Object
	runtime.Object
}

func newMirror(trim func(metav1.Object), put func(before, now metav1.Object), drop func(types.NamespacedName, metav1.Object)) *mirror {
	return &mirror{trim: trim, put: put, drop: drop, keep: true, objects: map[types.NamespacedName]metav1.Object{}}
}

// pass gives the Catalog what came.
func (c *Cache) pass(_, now metav1.Object) { c.catalog.Put(now) }

// passGone has the Catalog forget what is gone, of the sample's kind.
func (c *Cache) passGone(sample object) func(types.NamespacedName, metav1.Object) {
	return func(key types.NamespacedName, _ metav1.Object) {
		if gone, ok := sample.DeepCopyObject().(metav1.Object); ok {
			gone.SetNamespace(key.Namespace)
			gone.SetName(key.Name)
			c.catalog.Remove(gone)
		}
	}
}

// lastApplied is a copy of the whole object, which kubectl keeps.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// trimMeta drops what only the API server and kubectl need.
func trimMeta(o metav1.Object) {
	o.SetManagedFields(nil)
	delete(o.GetAnnotations(), lastApplied)
}

// trimNAD leaves a NetworkAttachmentDefinition its name, its annotations and its
// configuration.
func trimNAD(o metav1.Object) {
	trimMeta(o)
	if nad, ok := o.(*cniv1.NetworkAttachmentDefinition); ok {
		nad.ObjectMeta = metav1.ObjectMeta{
			Namespace: nad.Namespace, Name: nad.Name, UID: nad.UID, ResourceVersion: nad.ResourceVersion,
			Annotations: nad.Annotations, DeletionTimestamp: nad.DeletionTimestamp,
		}
	}
}

// trimCoordinator leaves a SpiderCoordinator what it says and its status.
func trimCoordinator(o metav1.Object) {
	trimMeta(o)
	if coordinator, ok := o.(*v2beta1.SpiderCoordinator); ok {
		coordinator.Status.Conditions = nil
	}
}
