package address

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/ipam/holder"
)

// run tells of what is queued until ctx ends.
func (p *publisher) run(ctx context.Context) error {
	var wg sync.WaitGroup
	for range publishers {
		wg.Go(func() {
			for p.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	p.queue.ShutDown()
	wg.Wait()
	return ctx.Err()
}

// next does the next of what is queued; false once there is no more, or ctx ended.
func (p *publisher) next(ctx context.Context) bool {
	name, isShutDown := p.queue.Get()
	if isShutDown {
		return false
	}
	defer p.queue.Done(name)
	if ctx.Err() != nil { // the next run does the rest
		return false
	}
	p.mu.Lock()
	e := p.endpoints[name]
	if e == nil {
		p.mu.Unlock()
		return true
	}
	now := *e
	p.mu.Unlock()
	p.do(ctx, name, now)
	return true
}

// do brings an endpoint to what it should say.
func (p *publisher) do(ctx context.Context, name types.NamespacedName, e publication) {
	var told version
	var err error
	switch {
	case e.want == nil && e.parks != "":
		told, err = version{isUnsure: true}, p.park(ctx, name, e.parks) // it may say something else from now on
	case e.want == nil:
		told, err = p.remove(ctx, name, e.told)
	default:
		made, isKnown := makerOf(e.want, p.pods)
		if !isKnown && time.Since(e.since) < makerPatience {
			p.queue.AddAfter(name, makerAgain)
			return
		}
		told, err = p.write(ctx, newEndpoint(e.want, p.client.node, made), e.told, e.want.Identity != "", e.waiting != nil)
	}
	if err != nil && ctx.Err() != nil { // no fault of the API server
		return
	}
	p.settle(name, e.want, told, err)
}

// settle notes what became of an endpoint that should say what want does.
func (p *publisher) settle(name types.NamespacedName, want *holder.Assignment, told version, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.endpoints[name]
	if e == nil {
		return
	}
	before := e.told
	e.told = told
	if e.want != want { // and queued again
		return
	}
	if errors.Is(err, errSuperseded) {
		e.finish(err)
		p.queue.Forget(name)
		delete(p.endpoints, name)
		return
	}
	if e.err = err; err != nil {
		p.log.Debug("a SpiderEndpoint is not written yet", "endpoint", name, "error", err)
		p.metrics.publicationErrors.Inc()
		p.queue.AddRateLimited(name)
		return
	}
	p.queue.Forget(name)
	if told != before {
		p.metrics.publications.Observe(time.Since(e.since).Seconds())
	}
	e.finish(nil)
	e.since = time.Time{}
	if want == nil {
		delete(p.endpoints, name)
	}
}
