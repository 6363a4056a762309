package address

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/attribution"
	"railhead/internal/ipam/holder"
)

const (
	// publishers is how many requests that tell of addresses are under way at a time.
	publishers = 4

	// publishAgain is when a request that failed is made again, and what that
	// grows to.
	publishAgain     = 100 * time.Millisecond
	publishAgainMost = time.Minute

	// makerPatience is for how long an endpoint is kept back because what made its
	// pod is not known yet, and makerAgain how often that is looked at.
	makerPatience = 5 * time.Second
	makerAgain    = 250 * time.Millisecond

	// endedFor is for how long it is known that an assignment ended: far longer
	// than it takes from the holder's answer to telling of it.
	endedFor = 5 * time.Minute
)

// publisher tells of the node's assignments in SpiderEndpoints, one a pod, each
// by one request where nothing is in its way. It is safe for concurrent use.
type publisher struct {
	client  *client
	pods    attribution.PodSource
	log     *slog.Logger
	metrics *metrics
	closed  <-chan struct{} // once nothing is told of any more
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu        sync.Mutex
	endpoints map[types.NamespacedName]*publication
	ended     map[holder.Key]ended // what was released lately
}

// ended is an assignment that ended, and when.
type ended struct {
	sequence uint64
	at       time.Time
}

// publication is what is known of one SpiderEndpoint, and what it should say.
type publication struct {
	want    *holder.Assignment // nil: it should not be there, or be parked
	parks   string             // the identity that it outlives its pod for: it stays, of no node
	since   time.Time          // when that was so
	told    version            // zero: it is not there, as far as is known
	err     error              // why it does not say so yet
	waiting *waiting           // for it to say what want does; nil: nobody is
}

// waiting is that somebody waits until an endpoint says what it should.
type waiting struct {
	count int           // of those who do
	done  chan struct{} // closed once it says so, or never will
	err   error         // why it never will
}

// finish has nobody wait any more.
func (e *publication) finish(err error) {
	if e.waiting != nil {
		e.waiting.err = err
		close(e.waiting.done)
		e.waiting = nil
	}
}

// version is a SpiderEndpoint as it was written or read last.
type version struct {
	uid      types.UID // empty: it is not there
	resource string
	pod      types.UID
	digest   digest
	isUnsure bool // a write was not answered: it may be there
}

func versionOf(e *v2beta1.SpiderEndpoint) version {
	return version{uid: e.UID, resource: e.ResourceVersion, pod: types.UID(e.Status.Current.UID), digest: digestOf(e)}
}

func newPublisher(c *client, pods attribution.PodSource, log *slog.Logger, m *metrics, closed <-chan struct{}) *publisher {
	return &publisher{
		client: c, pods: pods, log: log, metrics: m, closed: closed,
		endpoints: map[types.NamespacedName]*publication{}, ended: map[holder.Key]ended{},
	}
}

// start makes the queue, which has goroutines until it is shut down.
func (p *publisher) start() (stop func()) {
	p.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](publishAgain, publishAgainMost))
	return p.queue.ShutDown
}

// assigned has an assignment told of, in the background. The error says that it
// was released meanwhile.
func (p *publisher) assigned(a holder.Assignment) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.want(&a) == nil {
		return errReleased
	}
	return nil
}

// assignedNow has an assignment told of and waits for it. Where it cannot be
// before ctx ends, it is not told of later: the pod may be elsewhere by then.
func (p *publisher) assignedNow(ctx context.Context, a holder.Assignment) error {
	p.mu.Lock()
	e := p.want(&a)
	if e == nil {
		p.mu.Unlock()
		return errReleased
	}
	if e.waiting == nil {
		e.waiting = &waiting{done: make(chan struct{})}
	}
	w := e.waiting
	w.count++
	p.mu.Unlock()
	var gaveUp error
	select {
	case <-w.done:
	case <-p.closed:
		gaveUp = errEnded
	case <-ctx.Done():
		gaveUp = ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.count--
	switch {
	case p.hasEnded(&a): // be it after it was told of
		return errReleased
	case e.waiting != w:
		return w.err
	}
	err := fmt.Errorf("SpiderEndpoint %s, which is to say this before the pod starts, %w: %w", endpointName(&a), errUnpublished, errors.Join(e.err, gaveUp))
	if w.count == 0 {
		e.waiting = nil
		p.leave(e, &a)
	}
	return err
}

var (
	// errReleased says that an assignment ended before it was told of.
	errReleased = errors.New("it was released meanwhile")

	// errUnpublished says that an assignment was not told of in time.
	errUnpublished = errors.New("is not written")
)

// want notes what an endpoint should say, and queues it; nil where the
// assignment has ended already. It is called with the lock held.
func (p *publisher) want(a *holder.Assignment) *publication {
	if p.hasEnded(a) {
		return nil
	}
	name := endpointName(a)
	e := p.endpoints[name]
	if e == nil {
		e = &publication{}
		p.endpoints[name] = e
	}
	if e.want != nil && e.want.Sequence != a.Sequence {
		e.finish(errSuperseded)
	}
	e.want, e.parks, e.since, e.err = a, "", time.Now(), nil
	p.queue.Forget(name)
	p.queue.Add(name)
	return e
}

// released has the endpoint of an assignment deleted, unless a newer pod has it.
// One that belongs to an identity is parked, so that another node may have it.
func (p *publisher) released(a *holder.Assignment) {
	name := endpointName(a)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(a)
	e := p.endpoints[name]
	switch {
	case e == nil && a.Identity == "", e != nil && e.want != nil && e.want.Key != a.Key:
		return
	case e == nil: // another run may have written it
		e = &publication{}
		p.endpoints[name] = e
	}
	e.finish(errReleased)
	p.leave(e, a)
}

// leave has an endpoint deleted or parked that said what an assignment is, or was
// to. It is called with the lock held.
func (p *publisher) leave(e *publication, a *holder.Assignment) {
	e.want, e.parks, e.since, e.err = nil, a.Identity, time.Now(), nil
	e.told.pod = a.PodUID
	name := endpointName(a)
	p.queue.Forget(name)
	p.queue.Add(name)
}

// hasEnded tells whether an assignment ended. It is called with the lock held.
func (p *publisher) hasEnded(a *holder.Assignment) bool {
	last, ok := p.ended[a.Key]
	return ok && a.Sequence <= last.sequence
}

// end notes that an assignment ended: who was given it may be about to have it
// told of. It is called with the lock held.
func (p *publisher) end(a *holder.Assignment) {
	now := time.Now()
	maps.DeleteFunc(p.ended, func(_ holder.Key, e ended) bool { return now.Sub(e.at) > endedFor })
	p.ended[a.Key] = ended{a.Sequence, now}
}

// resume has all assignments told of, as far as endpoints of this node that were
// published before we began do not do so.
func (p *publisher) resume(assignments []holder.Assignment, published []*v2beta1.SpiderEndpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range assignments {
		p.want(&assignments[i])
	}
	for _, e := range published {
		p.remember(e)
	}
}

// remember notes an endpoint of this node that was published before we began. It
// is deleted or parked unless it is of a pod that we know an assignment of. It is
// called with the lock held.
func (p *publisher) remember(e *v2beta1.SpiderEndpoint) {
	name := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
	known := p.endpoints[name]
	switch {
	case known == nil:
		p.endpoints[name] = &publication{told: versionOf(e), parks: e.Annotations[v1alpha1.AnnotationIdentity], since: time.Now()}
		p.queue.Add(name)
	case known.told.uid == "":
		known.told = versionOf(e)
	}
}

// lag is how many endpoints do not say yet what they should, and for how long
// the oldest of these.
func (p *publisher) lag(now time.Time) (count int, oldest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.endpoints {
		if !e.since.IsZero() {
			count++
			oldest = max(oldest, now.Sub(e.since))
		}
	}
	return count, oldest
}
