package cniserver

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam/holder"
	"railhead/internal/policy"
)

// memoryDisk is a disk that can be full.
type memoryDisk struct {
	mu    sync.Mutex
	files map[string][]byte
	full  error
	sync  func() error // nil: all is on it
}

func (d *memoryDisk) Read(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if data, ok := d.files[name]; ok {
		return slices.Clone(data), nil
	}
	return nil, fs.ErrNotExist
}

func (d *memoryDisk) Append(name string, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full != nil {
		return d.full
	}
	d.files[name] = append(d.files[name], data...)
	return nil
}

func (d *memoryDisk) Sync(string) error {
	d.mu.Lock()
	full, sync := d.full, d.sync
	d.mu.Unlock()
	if full == nil && sync != nil {
		return sync()
	}
	return full
}

func (d *memoryDisk) unsynced(sync func() error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sync = sync
}

func (d *memoryDisk) Truncate(name string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[name] = d.files[name][:size]
	return nil
}

func (d *memoryDisk) Replace(name string, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full != nil {
		return d.full
	}
	d.files[name] = slices.Clone(data)
	return nil
}

func (d *memoryDisk) fill(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = err
}

// fakeCluster is an API server in memory.
type fakeCluster struct {
	catalog *policy.Catalog
	current func() error // nil: as Ready
	nads    map[string]*cniv1.NetworkAttachmentDefinition

	mu       sync.Mutex
	pods     map[string]*metav1.PartialObjectMetadata
	events   []string
	patches  map[string][]string // by pod
	patchErr []error             // of the next patches
	patched  chan string
	ready    error
	podErr   error
}

func newCluster(t *testing.T) *fakeCluster {
	t.Helper()
	c := &fakeCluster{
		catalog: policy.NewCatalog(), nads: map[string]*cniv1.NetworkAttachmentDefinition{},
		pods: map[string]*metav1.PartialObjectMetadata{}, patches: map[string][]string{}, patched: make(chan string, 1000),
	}
	for n := range rails {
		c.pool(t, fmt.Sprintf("gpu%d", n+1), fmt.Sprintf("{subnet: 172.16.%[1]d.0/24, ips: [172.16.%[1]d.1-172.16.%[1]d.200], gateway: 172.16.%[1]d.254}", 11+n))
		c.nad(fmt.Sprintf("gpu%d", n+1), railConfig(n))
	}
	c.pod("plain", nil)
	c.pod("train", map[string]string{cniv1.AnnotationNetworks: eightNetworks()})
	return c
}

func railConfig(n int) string {
	return fmt.Sprintf(`{"cniVersion":"0.3.1","name":"gpu%[1]d","plugins":[{"type":"macvlan","master":%[2]q,"mode":"bridge","ipam":{"type":"spiderpool","default_ipv4_ippool":["gpu%[1]d"]}},{"type":"coordinator"}]}`, n+1, rail(n))
}

func eightNetworks() string {
	var names []string
	for n := range rails {
		names = append(names, fmt.Sprintf("ai/gpu%d", n+1))
	}
	return strings.Join(names, ",")
}

func (c *fakeCluster) pool(t *testing.T, name, spec string) {
	t.Helper()
	p := &v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	c.catalog.Put(p)
}

func (c *fakeCluster) nad(name, config string) {
	c.nads["ai/"+name] = &cniv1.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ai", Name: name}, Spec: cniv1.NetworkAttachmentDefinitionSpec{Config: config},
	}
}

func (c *fakeCluster) pod(name string, annotations map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods["ai/"+name] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ai", Name: name, UID: types.UID("uid-" + name), Annotations: annotations,
	}}
}

func notFound(kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}

func (c *fakeCluster) Pod(_ context.Context, namespace, name, uid string) (*metav1.PartialObjectMetadata, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pod := c.pods[namespace+"/"+name]
	switch {
	case c.podErr != nil:
		return nil, c.podErr
	case pod == nil || uid != "" && uid != string(pod.UID):
		return nil, notFound("pods", name)
	}
	return pod, nil
}

func (c *fakeCluster) Namespace(context.Context, string) (*metav1.ObjectMeta, error) {
	return &metav1.ObjectMeta{Name: "ai"}, nil
}

func (c *fakeCluster) Above(context.Context, *metav1.PartialObjectMetadata) ([]policy.Application, error) {
	return nil, nil
}

func (c *fakeCluster) PatchPod(_ context.Context, namespace, name string, patch []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := namespace + "/" + name
	if len(c.patchErr) > 0 {
		err := c.patchErr[0]
		c.patchErr = c.patchErr[1:]
		c.patched <- key + " failed"
		return err
	}
	c.patches[key] = append(c.patches[key], string(patch))
	c.patched <- key
	return nil
}

func (c *fakeCluster) Event(_ context.Context, pod *metav1.PartialObjectMetadata, reason, text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, pod.Namespace+"/"+pod.Name+" "+reason+": "+text)
	return nil
}

// told takes the Events that were made.
func (c *fakeCluster) told() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	events := c.events
	c.events = nil
	return events
}

func (c *fakeCluster) Current() error {
	if c.current != nil {
		return c.current()
	}
	return c.Ready()
}

func (c *fakeCluster) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

func (c *fakeCluster) setReady(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = err
}

func (c *fakeCluster) Catalog() *policy.Catalog { return c.catalog }

func (c *fakeCluster) NAD(namespace, name string) (*cniv1.NetworkAttachmentDefinition, error) {
	if nad := c.nads[namespace+"/"+name]; nad != nil {
		return nad, nil
	}
	return nil, notFound("network-attachment-definitions", name)
}

func (c *fakeCluster) Coordinator() (v2beta1.CoordinatorSpec, v2beta1.CoordinatorStatus, error) {
	return v2beta1.CoordinatorSpec{}, v2beta1.CoordinatorStatus{Phase: v2beta1.PhaseSynced}, nil
}

func (c *fakeCluster) Node() (metav1.ObjectMeta, []netip.Addr) {
	return metav1.ObjectMeta{Name: "node1"}, []netip.Addr{netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("10.1.20.4")}
}

// fakeAddresses gives addresses of the pools that come first.
type fakeAddresses struct {
	cluster *fakeCluster

	mu       sync.Mutex
	next     int
	assigned map[holder.Key]holder.Assignment
	released []string
	vouched  []holder.Key
	doubtful bool
	epoch    int64
	err      error                           // of Assign
	after    func(ctx context.Context) error // of Assign, of what was assigned; nil: nothing goes wrong
	notReady error
}

func (f *fakeAddresses) Assign(ctx context.Context, r holder.Request) (holder.Assignment, error) {
	a, err := f.assign(r)
	if err == nil && f.after != nil {
		err = f.after(ctx)
	}
	return a, err
}

func (f *fakeAddresses) assign(r holder.Request) (holder.Assignment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return holder.Assignment{}, f.err
	}
	if a, ok := f.assigned[r.Key]; ok {
		return a, nil
	}
	f.next++
	a := holder.Assignment{Key: r.Key, Pod: r.Pod, Sequence: uint64(f.next)}
	for _, nic := range r.NICs {
		for _, choice := range nic.Choices {
			pool, _ := f.cluster.catalog.Pool(choice.Pools[0].Name)
			addr := pool.Subnet.Addr()
			for range f.next {
				addr = addr.Next()
			}
			a.Addresses = append(a.Addresses, holder.Assigned{
				Interface: nic.Interface, Pool: pool.Name, Prefix: netip.PrefixFrom(addr, pool.Subnet.Bits()), Doubtful: f.doubtful, Epoch: f.epoch,
			})
		}
	}
	f.assigned[r.Key] = a
	return a, nil
}

func (f *fakeAddresses) Release(_ context.Context, key holder.Key, sequence uint64, quarantine map[netip.Addr]string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.assigned[key]
	if ok && (sequence == 0 || sequence == a.Sequence) {
		delete(f.assigned, key)
		f.released = append(f.released, fmt.Sprint(key.PodUID, " ", key.Sandbox, " ", quarantine))
	}
	return nil
}

func (f *fakeAddresses) Waiting(holder.Key) error { return nil }

func (f *fakeAddresses) Vouch(key holder.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.vouched = append(f.vouched, key)
}

func (f *fakeAddresses) Ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.notReady
}

func (f *fakeAddresses) setReady(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notReady = err
}

func (f *fakeAddresses) held() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.assigned)
}

func (c *fakeCluster) removePool(name string) {
	c.catalog.Remove(&v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: name}})
}
