package attachbench

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// namespace is that of all pods and networks.
const namespace = "bench"

// cluster is what a warm agent knows, and counts what it would ask the API
// server. It implements [cniserver.Cluster].
type cluster struct {
	catalog *policy.Catalog

	mu      sync.Mutex
	waiting map[string]chan struct{} // by pod: closed once its ADD is answered
	asked   asked
}

// asked is how often the API server would have been asked.
type asked struct {
	all   int
	early int // of these, those that an answer waited for
}

func newCluster() *cluster {
	made := &cluster{catalog: policy.NewCatalog(), waiting: map[string]chan struct{}{}}
	config := policy.DefaultConfig()
	config.DetectGateway, config.DetectConflict = false, false // which plugins cannot do
	made.catalog.SetConfig(config)
	for i := range rails {
		gateway := gateway(i).String()
		made.catalog.Put(&v2beta1.SpiderIPPool{
			ObjectMeta: metav1.ObjectMeta{Name: parent(i), UID: types.UID(parent(i))},
			Spec:       v2beta1.IPPoolSpec{Subnet: subnet(i).String(), IPs: []string{leasedRange(i)}, Gateway: &gateway},
		})
	}
	return made
}

// answers notes that a pod waits for its answer, and by what it returns that it
// has it.
func (c *cluster) answers(pod string) func() {
	answered := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[pod] = answered
	return func() { close(answered) }
}

// patience is how long a request is held back for the pod's answer.
const patience = 10 * time.Second

// ask is a request for a pod. It is held back until the pod has its answer: one
// that never comes, waits for the request.
func (c *cluster) ask(pod string) {
	c.mu.Lock()
	answered := c.waiting[pod]
	c.asked.all++
	c.mu.Unlock()
	if answered == nil {
		return
	}
	select {
	case <-answered:
	case <-time.After(patience):
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked.early++
	}
}

// requests are those so far.
func (c *cluster) requests() asked {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

func (c *cluster) Pod(_ context.Context, namespace, name, uid string) (*metav1.PartialObjectMetadata, error) {
	var networks []string
	for i := range rails {
		networks = append(networks, parent(i))
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(uid),
		Annotations: map[string]string{cniv1.AnnotationNetworks: strings.Join(networks, ",")},
	}}, nil
}

func (c *cluster) Namespace(_ context.Context, name string) (*metav1.ObjectMeta, error) {
	return &metav1.ObjectMeta{Name: name}, nil
}

func (c *cluster) Above(context.Context, *metav1.PartialObjectMetadata) ([]policy.Application, error) {
	return nil, nil
}

func (c *cluster) PatchPod(_ context.Context, _, name string, _ []byte) error {
	c.ask(name)
	return nil
}

func (c *cluster) Event(_ context.Context, pod *metav1.PartialObjectMetadata, _, _ string) error {
	c.ask(pod.Name)
	return nil
}

func (c *cluster) Ready() error             { return nil }
func (c *cluster) Current() error           { return nil }
func (c *cluster) Catalog() *policy.Catalog { return c.catalog }

func (c *cluster) NAD(namespace, name string) (*cniv1.NetworkAttachmentDefinition, error) {
	return &cniv1.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: cniv1.NetworkAttachmentDefinitionSpec{Config: fmt.Sprintf(
			`{"cniVersion":"1.0.0","name":%[1]q,"plugins":[{"type":"macvlan","master":%[1]q,"mode":"bridge","ipam":{"type":"spiderpool","default_ipv4_ippool":[%[1]q]}},{"type":"coordinator"}]}`,
			name)},
	}, nil
}

func (c *cluster) Coordinator() (v2beta1.CoordinatorSpec, v2beta1.CoordinatorStatus, error) {
	return v2beta1.CoordinatorSpec{DetectGateway: new(false), DetectIPConflict: new(false)}, v2beta1.CoordinatorStatus{}, nil
}

func (c *cluster) Node() (metav1.ObjectMeta, []netip.Addr) {
	return metav1.ObjectMeta{Name: "node1"}, nil
}
