package ipambench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/spiderpool/v2beta1"
)

// replay is how allocation from one map in one object is measured.
type replay struct {
	writers int           // pods that allocate at once, each over a connection of its own
	begins  time.Duration // for how long pods are begun, which are counted to their end
}

// replayed is what came of a replay.
type replayed struct {
	pods int
	took time.Duration
	sum  Sum
}

// addresses is how many were allocated.
func (r replayed) addresses() float64 { return float64(r.pods * rails) }

func (r replayed) perSecond() float64 { return r.addresses() / r.took.Seconds() }

// perWrite is how many addresses a write of a pool allocated, those in vain counted.
func (r replayed) perWrite() float64 {
	return r.addresses() / float64(r.sum.Count("PUT", "spiderippools"))
}

// perPod is how many requests a pod made.
func (r replayed) perPod() float64 { return float64(r.sum.Count()) / float64(r.pods) }

// run makes pools, allocates out of them, and deletes them.
func (r replay) run(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (result replayed, err error) {
	admin, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return result, err
	}
	pools, err := r.makePools(ctx, admin)
	if err != nil {
		return result, err
	}
	defer func() {
		for _, name := range pools {
			err = errors.Join(err, admin.Delete(ctx, &v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		}
		err = errors.Join(err, admin.DeleteAllOf(ctx, &v2beta1.SpiderEndpoint{}, client.InNamespace(metav1.NamespaceDefault)))
	}()
	return r.measure(ctx, pools, config, scheme)
}

func (r replay) measure(ctx context.Context, pools []string, config *rest.Config, scheme *runtime.Scheme) (replayed, error) {
	var (
		traffic Traffic
		pods    atomic.Int64
	)
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for w := range r.writers {
		c, err := client.New(traffic.Client(config), client.Options{Scheme: scheme})
		if err != nil {
			return replayed{}, err
		}
		o := &oneMap{Client: c, node: fmt.Sprintf("node%d", w)}
		group.Go(func() error {
			for i := 0; time.Since(start) < r.begins; i++ {
				if err := o.pod(ctx, fmt.Sprintf("replay-%d-%d", w, i), pools); err != nil {
					return err
				}
				pods.Add(1)
			}
			return nil
		})
	}
	err := group.Wait()
	took := time.Since(start)
	return replayed{pods: int(pods.Load()), took: took, sum: traffic.Sum()}, err
}

// makePools makes an empty pool a rail.
func (r replay) makePools(ctx context.Context, c client.Client) ([]string, error) {
	var names []string
	for rail := range rails {
		pool := &v2beta1.SpiderIPPool{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("replay-%d", rail)},
			Spec: v2beta1.IPPoolSpec{
				IPVersion: new(int64(4)), Subnet: fmt.Sprintf("10.%d.0.0/16", rail),
				IPs: []string{fmt.Sprintf("10.%[1]d.0.1-10.%[1]d.255.254", rail)},
			},
		}
		if err := c.Create(ctx, pool); err != nil {
			return names, err
		}
		names = append(names, pool.Name)
	}
	return names, nil
}
