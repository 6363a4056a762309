package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/cniserver"
	"railhead/internal/cniserver/delegate"
	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/journal"
	"railhead/internal/npwg"
	"railhead/internal/policy"
)

// nodeAddress is the node's own.
const nodeAddress = "10.1.20.4"

// runtimeNode is a node whose agent's server is the test's own, and its runtime.
type runtimeNode struct {
	cni     *libcni.CNIConfig
	list    *libcni.NetworkConfigList
	cluster *runtimeCluster
}

// ownNetwork writes the plugin of the cluster's own network into a directory: a veth
// with an address and routes over the node.
func ownNetwork(t *testing.T, dir string) {
	t.Helper()
	const plugin = `#!/bin/sh
set -e
n=${CNI_CONTAINERID#sandbox}
ns=${CNI_NETNS##*/}
case $CNI_COMMAND in
ADD)
	ip link add own$n type veth peer name $CNI_IFNAME netns $ns
	ip link set own$n up
	ip addr add 169.254.1.1/32 dev own$n
	ip route add 10.244.1.$n dev own$n
	ip -n $ns addr add 10.244.1.$n/32 dev $CNI_IFNAME
	ip -n $ns link set $CNI_IFNAME up
	ip -n $ns route add 169.254.1.1 dev $CNI_IFNAME scope link
	ip -n $ns route add default via 169.254.1.1
	echo '{"cniVersion":"1.0.0","interfaces":[{"name":"'$CNI_IFNAME'","sandbox":"'$CNI_NETNS'"}],"ips":[{"address":"10.244.1.'$n'/32","interface":0}]}'
	;;
DEL) ip link del own$n 2> /dev/null || true ;;
VERSION) echo '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}' ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "own"), []byte(plugin), 0o755); err != nil {
		t.Fatal(err)
	}
}

// serve answers calls at a socket until ctx ends; the channel is closed then.
func (n *runtimeNode) serve(ctx context.Context, t *testing.T, socket string) <-chan struct{} {
	t.Helper()
	disk, err := journal.OS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	records, err1 := record.Open(disk, record.File)
	attacher, err2 := attach.New(attach.Config{})
	plugins, err3 := delegate.New(delegate.Config{})
	listener, err4 := cnicall.Listen(socket)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	server, err := cniserver.New(cniserver.Config{
		NodeName: "node1", Addresses: newLeasedAddresses(ctx, t, n.cluster.pools()), Cluster: n.cluster, Attacher: attacher, Records: records,
		Delegate: plugins, BootID: "boot",
		ClusterNetwork: func(string, string) (*libcni.NetworkConfigList, error) {
			return libcni.NetworkConfFromBytes([]byte(`{"cniVersion":"1.0.0","name":"own","plugins":[{"type":"own"}]}`))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var answering sync.WaitGroup
		answering.Go(func() {
			if err := cnicall.Serve(ctx, listener, server.Handle, cnicall.Limits{}); err != nil {
				t.Errorf("calls: %v", err)
			}
		})
		if err := server.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("server: %v", err)
		}
		answering.Wait()
		if err := errors.Join(records.Close(), disk.Close(), attacher.Close()); err != nil {
			t.Error(err)
		}
	}()
	return ended
}

// runtimeCluster is what a warm agent knows of its cluster. It implements
// [cniserver.Cluster].
type runtimeCluster struct {
	catalog *policy.Catalog

	mu       sync.Mutex
	statuses map[string]string // the annotation, by pod
}

func newRuntimeCluster() *runtimeCluster {
	c := &runtimeCluster{catalog: policy.NewCatalog(), statuses: map[string]string{}}
	for name, pool := range c.pools() {
		gateway := gatewayOf(pool).Addr().String()
		c.catalog.Put(&v2beta1.SpiderIPPool{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Spec:       v2beta1.IPPoolSpec{Subnet: pool.String(), IPs: []string{leasedRange(pool)}, Gateway: &gateway},
		})
	}
	return c
}

// pools are the subnets of all networks, by the names of their pools.
func (*runtimeCluster) pools() map[string]netip.Prefix {
	pools := map[string]netip.Prefix{}
	for name, network := range runtimeNetworks("one") {
		for i, subnet := range network.subnets() {
			pools[poolName(name, i)] = subnet
		}
	}
	return pools
}

func poolName(network string, family int) string {
	return network + []string{"-ipv4", "-ipv6"}[family]
}

// leasedRange is what the node has of a pool.
func leasedRange(pool netip.Prefix) string {
	first := pool.Addr().Next()
	last := first
	for range 9 {
		last = last.Next()
	}
	return first.String() + "-" + last.String()
}

func (*runtimeCluster) Pod(_ context.Context, namespace, name, uid string) (*metav1.PartialObjectMetadata, error) {
	var networks []string
	for n := range len(runtimeNetworks(name)) {
		networks = append(networks, fmt.Sprintf("%s-net%d", name, 1+n))
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(uid),
		Annotations: map[string]string{cniv1.AnnotationNetworks: strings.Join(networks, ",")},
	}}, nil
}

// NAD finds the network of a pod for an interface: "one-net1".
func (*runtimeCluster) NAD(namespace, name string) (*cniv1.NetworkAttachmentDefinition, error) {
	pod, interfaceName, _ := strings.Cut(name, "-")
	network, ok := runtimeNetworks(pod)[interfaceName]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "network-attachment-definitions"}, name)
	}
	addresses := fmt.Sprintf(`"ipam":{"type":"spiderpool","default_ipv4_ippool":[%q],"default_ipv6_ippool":[%q]}`,
		poolName(interfaceName, 0), poolName(interfaceName, 1))
	return &cniv1.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: cniv1.NetworkAttachmentDefinitionSpec{Config: fmt.Sprintf(
			`{"cniVersion":"0.3.1","name":%q,"plugins":[%s,{"type":"coordinator"}]}`, name, fmt.Sprintf(network.plugins, addresses))},
	}, nil
}

func (c *runtimeCluster) PatchPod(_ context.Context, _, name string, patch []byte) error {
	var said struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal(patch, &said); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statuses[name] = said.Metadata.Annotations[npwg.AnnotationStatus]
	return nil
}

// addresses are those of a pod by interface, as its annotation tells of them.
func (p *runtimePod) addresses(t *testing.T) map[string][]string {
	t.Helper()
	var text string
	Eventually(t, func() string { // it comes behind the answer
		p.cluster.mu.Lock()
		defer p.cluster.mu.Unlock()
		if text = p.cluster.statuses[p.name]; text == "" {
			return "the annotation of " + p.name
		}
		return ""
	})
	status, err := npwg.ParseStatus(text)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, s := range status {
		all[s.Interface] = s.IPs
	}
	return all
}

// containsAddress says whether what `ip -o addr` prints has an address.
func containsAddress(text, address string) bool { return strings.Contains(text, " "+address+"/") }

func (*runtimeCluster) Event(_ context.Context, pod *metav1.PartialObjectMetadata, reason, text string) error {
	return fmt.Errorf("pod %s has an Event, want none: %s: %s", pod.Name, reason, text)
}

func (*runtimeCluster) Namespace(_ context.Context, name string) (*metav1.ObjectMeta, error) {
	return &metav1.ObjectMeta{Name: name}, nil
}

func (*runtimeCluster) Above(context.Context, *metav1.PartialObjectMetadata) ([]policy.Application, error) {
	return nil, nil
}

func (*runtimeCluster) Ready() error               { return nil }
func (*runtimeCluster) Current() error             { return nil }
func (c *runtimeCluster) Catalog() *policy.Catalog { return c.catalog }

func (*runtimeCluster) Coordinator() (v2beta1.CoordinatorSpec, v2beta1.CoordinatorStatus, error) {
	return v2beta1.CoordinatorSpec{}, v2beta1.CoordinatorStatus{Phase: v2beta1.PhaseSynced}, nil
}

func (*runtimeCluster) Node() (metav1.ObjectMeta, []netip.Addr) {
	return metav1.ObjectMeta{Name: "node1"}, []netip.Addr{netip.MustParseAddr(nodeAddress)}
}

// leasedAddresses gives addresses that the node has been granted, as the agent does.
// It implements [cniserver.Addresses].
type leasedAddresses struct{ holder *holder.Holder }

func newLeasedAddresses(ctx context.Context, t *testing.T, pools map[string]netip.Prefix) leasedAddresses {
	t.Helper()
	disk, err := journal.OS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = disk.Close() })
	h, err := holder.Open(disk, holder.Options{Node: "node1", UID: "uid-node1", BootID: "boot", Session: "lab", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	h.Occupied(nil)
	api := &oneLease{}
	if err := h.Sync(ctx, api); err != nil {
		t.Fatal(err)
	}
	lease := api.lease.DeepCopy()
	lease.Status.NodeUID, lease.Status.ObservedGeneration = lease.Spec.NodeUID, lease.Generation
	for name, pool := range pools {
		lease.Status.Pools = append(lease.Status.Pools, v1alpha1.LeasedPool{
			Pool: name, Reserve: 10, Grants: []v1alpha1.Grant{{Epoch: 1, Addresses: []string{leasedRange(pool)}}},
		})
	}
	lease.ResourceVersion = "2"
	if err := h.Observe(lease); err != nil {
		t.Fatal(err)
	}
	return leasedAddresses{h}
}

func (l leasedAddresses) Assign(_ context.Context, request holder.Request) (holder.Assignment, error) {
	return l.holder.Assign(request)
}

func (l leasedAddresses) Release(_ context.Context, key holder.Key, sequence uint64, quarantine map[netip.Addr]string) error {
	_, _, err := l.holder.Release(key, sequence, quarantine)
	return err
}

func (leasedAddresses) Waiting(holder.Key) error { return nil } // nothing has to be waited for

func (l leasedAddresses) Vouch(key holder.Key) { l.holder.Vouch(key) }

func (l leasedAddresses) Ready() error { return l.holder.Ready() }

// oneLease has the lease of the node. It implements [holder.API].
type oneLease struct{ lease *v1alpha1.AddressLease }

func (a *oneLease) Lease(context.Context) (*v1alpha1.AddressLease, error) {
	if a.lease == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "addressleases"}, "node1")
	}
	return a.lease.DeepCopy(), nil
}

func (a *oneLease) CreateLease(_ context.Context, lease *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	a.lease = lease.DeepCopy()
	a.lease.ResourceVersion, a.lease.Generation = "1", 1
	return a.lease.DeepCopy(), nil
}

func (*oneLease) UpdateLease(context.Context, *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	return nil, errors.New("nobody else writes the lease")
}
