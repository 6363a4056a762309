package ipambench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
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
	records int // in each pool before
	writers int // pods that allocate at once, each over a connection of its own
	rails   int // pools that each pod has an address of
}

// replayFor is for how long pods are begun, which are counted to their end.
const replayFor = 3 * time.Second

// replayed is what came of a replay.
type replayed struct {
	replay
	pods                 int
	took                 time.Duration
	each                 []time.Duration // of each pod, in order
	conflicts, exhausted int64
	sum                  Sum
}

// addresses is how many were allocated.
func (r replayed) addresses() float64 { return float64(r.pods * r.rails) }

func (r replayed) perSecond() float64 { return r.addresses() / r.took.Seconds() }

// perWrite is how many addresses a write of a pool allocated, those in vain counted.
func (r replayed) perWrite() float64 {
	return r.addresses() / float64(r.sum.Count("PUT", "spiderippools"))
}

// perPod is how many requests a pod made.
func (r replayed) perPod() float64 { return float64(r.sum.Count()) / float64(r.pods) }

// wait is for how long the pods in the middle waited, in milliseconds.
func (r replayed) wait() float64 {
	if len(r.each) == 0 {
		return math.NaN()
	}
	return at(r.each, 0.5).Seconds() * 1e3
}

// name says what was replayed.
func (r replay) name() string {
	return fmt.Sprintf("%d rails, %d records, %d writers", r.rails, r.records, r.writers)
}

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
		conflicts, exhausted atomic.Int64
		traffic              Traffic
		mu                   sync.Mutex
		each                 []time.Duration
	)
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for w := range r.writers {
		c, err := client.New(traffic.Client(config), client.Options{Scheme: scheme})
		if err != nil {
			return replayed{}, err
		}
		o := &oneMap{Client: c, node: fmt.Sprintf("node%d", w), conflicts: &conflicts, exhausted: &exhausted}
		group.Go(func() error {
			for i := 0; time.Since(start) < replayFor; i++ {
				began := time.Now()
				if err := o.pod(ctx, fmt.Sprintf("replay-%d-%d", w, i), pools); err != nil {
					return err
				}
				mu.Lock()
				each = append(each, time.Since(began))
				mu.Unlock()
			}
			return nil
		})
	}
	err := group.Wait()
	took := time.Since(start)
	slices.SortFunc(each, cmp.Compare)
	return replayed{
		replay: r, pods: len(each), took: took, each: each,
		conflicts: conflicts.Load(), exhausted: exhausted.Load(), sum: traffic.Sum(),
	}, err
}

// makePools makes a pool a rail, with records of earlier pods.
func (r replay) makePools(ctx context.Context, c client.Client) ([]string, error) {
	var names []string
	for rail := range r.rails {
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
		taken := map[string]record{}
		address := netip.AddrFrom4([4]byte{10, byte(rail), 0, 0})
		for i := range r.records {
			address = address.Next()
			name := fmt.Sprintf("earlier-%d", i)
			taken[address.String()] = record{Pod: metav1.NamespaceDefault + "/" + name, PodUID: podUID(name)}
		}
		if err := setMap(pool, taken); err != nil {
			return names, err
		}
		if err := c.Status().Update(ctx, pool); err != nil {
			return names, err
		}
	}
	return names, nil
}

// at is the time within which a share of something in order took place.
func at(each []time.Duration, share float64) time.Duration {
	if len(each) == 0 {
		return 0
	}
	return each[min(len(each)-1, int(share*float64(len(each))))]
}

// String is what is printed of a replay.
func (r replayed) String() string {
	return fmt.Sprintf("%s/s, %s conflicts and %s given up an address, %s an address, a pod %s ms", figure(r.perSecond()),
		figure(float64(r.conflicts)/r.addresses()), figure(float64(r.exhausted)/r.addresses()),
		kilobytes(float64(r.sum.Bytes)/r.addresses()), figure(r.wait()))
}
