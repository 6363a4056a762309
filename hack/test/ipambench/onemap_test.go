package ipambench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/spiderpool/v2beta1"
)

// What an allocation from one map in one object does when somebody else wrote
// the object in between: another try, this often, after a pause that grows.
const (
	oneMapTries  = 5
	oneMapPause  = 10 * time.Millisecond
	oneMapGrowth = 1.5
	oneMapJitter = 0.1
)

// errExhausted is an allocation given up after its last try: to a cluster, a
// sandbox that fails and is made again.
var errExhausted = errors.New("the object changed between reading and writing at every try")

// oneMap allocates as the reference does: a pool is one object whose status has
// all its allocations as one JSON text, which each allocation reads live, parses,
// adds to and writes back by compare-and-swap. A pod's endpoint is created with
// its first address and updated with each further one.
type oneMap struct {
	client.Client
	node string
}

// record is what the map has of an address.
type record struct {
	Pod    string `json:"pod"`
	PodUID string `json:"podUid"`
}

// pod allocates an address of each pool, one after the other. An allocation that
// was given up is begun again.
func (o *oneMap) pod(ctx context.Context, name string, pools []string) error {
	endpoint := &v2beta1.SpiderEndpoint{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Status: v2beta1.EndpointStatus{
			Current:             v2beta1.EndpointAllocation{UID: podUID(name), Node: o.node},
			OwnerControllerType: "Pod", OwnerControllerName: name,
		},
	}
	for i, pool := range pools {
		address, err := o.insist(ctx, name, pool)
		if err != nil {
			return err
		}
		endpoint.Status.Current.IPs = append(endpoint.Status.Current.IPs, v2beta1.EndpointInterface{
			Interface: fmt.Sprintf("net%d", i+1), IPv4: &address, IPv4Pool: &pools[i],
		})
		if i == 0 {
			err = o.Create(ctx, endpoint)
		} else {
			err = o.Update(ctx, endpoint)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *oneMap) insist(ctx context.Context, pod, pool string) (string, error) {
	for {
		address, err := o.allocate(ctx, pod, pool)
		if !errors.Is(err, errExhausted) {
			return address, err
		}
	}
}

// allocate is one allocation with its tries.
func (o *oneMap) allocate(ctx context.Context, pod, pool string) (string, error) {
	pause := oneMapPause
	for range oneMapTries {
		address, err := o.try(ctx, pod, pool)
		if !apierrors.IsConflict(err) {
			return address, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Duration(float64(pause) * (1 + oneMapJitter*rand.Float64()))):
		}
		pause = time.Duration(float64(pause) * oneMapGrowth)
	}
	return "", errExhausted
}

func (o *oneMap) try(ctx context.Context, pod, name string) (string, error) {
	var pool v2beta1.SpiderIPPool
	if err := o.Get(ctx, client.ObjectKey{Name: name}, &pool); err != nil {
		return "", err
	}
	taken := map[string]record{}
	if text := pool.Status.AllocatedIPs; text != nil {
		if err := json.Unmarshal([]byte(*text), &taken); err != nil {
			return "", err
		}
	}
	address, err := lowestFree(pool.Spec.IPs, taken)
	if err != nil {
		return "", fmt.Errorf("pool %s: %w", name, err)
	}
	taken[address.String()] = record{Pod: metav1.NamespaceDefault + "/" + pod, PodUID: podUID(pod)}
	if err := setMap(&pool, taken); err != nil {
		return "", err
	}
	return address.String() + "/16", o.Status().Update(ctx, &pool)
}

func setMap(pool *v2beta1.SpiderIPPool, taken map[string]record) error {
	text, err := json.Marshal(taken)
	if err != nil {
		return err
	}
	pool.Status.AllocatedIPs, pool.Status.AllocatedIPCount = new(string(text)), new(int64(len(taken)))
	return nil
}

// lowestFree is the first address of ranges that a map lacks.
func lowestFree(ranges []string, taken map[string]record) (netip.Addr, error) {
	for _, text := range ranges {
		first, last, _ := strings.Cut(text, "-")
		address, err := netip.ParseAddr(first)
		if err != nil {
			return netip.Addr{}, err
		}
		for end := netip.MustParseAddr(last); address.Compare(end) <= 0; address = address.Next() {
			if _, isTaken := taken[address.String()]; !isTaken {
				return address, nil
			}
		}
	}
	return netip.Addr{}, errors.New("no free address")
}

// podUID is a UID, the same each time, for a pod's name.
func podUID(name string) string {
	var sum uint64 = 14695981039346656037
	for _, b := range []byte(name) {
		sum = (sum ^ uint64(b)) * 1099511628211
	}
	return fmt.Sprintf("%08x-%04x-4000-8000-%012x", uint32(sum), uint16(sum>>32), sum>>16)
}
