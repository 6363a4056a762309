package cniserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/npwg"
)

// AnnotationAttachment of a pod says how its attachment went: a record.Report.
const AnnotationAttachment = record.Annotation

const (
	patchMost  = 10 * time.Second // one attempt
	retryFirst = 500 * time.Millisecond
	retryMost  = time.Minute
	patchers   = 4 // at once
)

// patch is what is to be written into a pod.
type patch struct {
	sandbox, namespace, name string
	body                     func() ([]byte, error) // made when it is sent first: no answer waits for it
	due                      time.Time              // when it is tried; the zero time: at once
	wait                     time.Duration          // before the attempt that is due; 0: none failed
	busy                     bool                   // it is being tried
}

// publisher writes what pods' annotations are to say, the latest for each pod,
// until it is written or the pod is gone.
type publisher struct {
	pods   Pods
	log    *slog.Logger
	failed func()
	now    func() time.Time

	mu    sync.Mutex
	queue map[string]*patch // by namespace/name of the pod
	more  chan struct{}     // has a word when the queue changed
}

func newPublisher(pods Pods, log *slog.Logger, now func() time.Time, failed func()) *publisher {
	return &publisher{pods: pods, log: log, now: now, failed: failed, queue: map[string]*patch{}, more: make(chan struct{}, 1)}
}

// put queues a patch in place of an earlier one of its pod.
func (p *publisher) put(next patch) {
	p.mu.Lock()
	p.queue[next.namespace+"/"+next.name] = &next
	p.mu.Unlock()
	p.changed()
}

// drop forgets what is queued of a sandbox.
func (p *publisher) drop(sandbox string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, one := range p.queue {
		if one.sandbox == sandbox {
			delete(p.queue, key)
		}
	}
}

// changed has the queue looked at.
func (p *publisher) changed() {
	select {
	case p.more <- struct{}{}:
	default: // it will be
	}
}

// run patches until ctx ends.
func (p *publisher) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	slots := make(chan struct{}, patchers)
	for ctx.Err() == nil {
		key, one, wait := p.next()
		if one == nil {
			p.pause(ctx, wait)
			continue
		}
		select {
		case slots <- struct{}{}:
			all.Go(func() {
				p.send(ctx, key, one)
				<-slots
				p.changed()
			})
		case <-ctx.Done():
		}
	}
}

// pause waits until the queue changes, or for a time.
func (p *publisher) pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.more:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// next takes a patch that is due; without one it says how long there is none.
func (p *publisher) next() (key string, one *patch, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait = retryMost
	for key, one := range p.queue {
		if one.busy {
			continue
		}
		left := one.due.Sub(p.now())
		if left <= 0 {
			one.busy = true
			return key, one, 0
		}
		wait = min(wait, left)
	}
	return "", nil, wait
}

// send makes one attempt for a pod.
func (p *publisher) send(ctx context.Context, key string, one *patch) {
	body, err := one.body()
	if err != nil { // no attempt will do
		p.log.Warn("the network status of a pod cannot be told", "pod", key, "error", err)
		p.settle(key, one, nil)
		return
	}
	within, stop := context.WithTimeout(ctx, patchMost)
	err = p.pods.PatchPod(within, one.namespace, one.name, body)
	stop()
	p.settle(key, one, err)
}

// settle says what is to become of a patch after an attempt.
func (p *publisher) settle(key string, one *patch, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.busy = false
	switch {
	case p.queue[key] != one: // a later one has its own turn
	case err == nil || isOver(err):
		delete(p.queue, key)
	default:
		one.wait = min(max(2*one.wait, retryFirst), retryMost)
		one.due = p.now().Add(one.wait)
		p.failed()
		p.log.Warn("the network status of a pod cannot be written, and is tried again", "pod", key, "again_in", one.wait, "error", err)
	}
}

// isOver tells that a pod is gone, or another one has its name: no attempt will do.
func isOver(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsGone(err)
}

// publish queues what a pod's annotations are to say of an attachment.
func (s *Server) publish(att record.Attachment) {
	s.publisher.put(patch{
		sandbox: att.ContainerID, namespace: att.Namespace, name: att.Name,
		body: sync.OnceValues(func() ([]byte, error) { return s.statusPatch(att) }),
	})
}

// statusPatch is the one merge patch with all that is told of an attachment.
func (s *Server) statusPatch(att record.Attachment) ([]byte, error) {
	attached := make([]npwg.Attached, len(att.Networks))
	for i, n := range att.Networks {
		result, err := resultIn(att, n)
		if err != nil {
			return nil, err
		}
		namespace, name, _ := strings.Cut(n.NAD, "/")
		attached[i] = npwg.Attached{
			Selected: npwg.Selected{Namespace: namespace, Name: name, Interface: n.Interface, Default: n.Default},
			Network:  n.Name, Result: result, Device: s.deviceInfo(att.ContainerID, n.Interface),
		}
	}
	status, err := npwg.Status(attached)
	if err != nil {
		return nil, err
	}
	body, err := npwg.StatusPatch(att.PodUID, status)
	if err != nil {
		return nil, err
	}
	var whole struct {
		Metadata struct {
			UID         string            `json:"uid"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(body, &whole); err != nil {
		return nil, err
	}
	if report, err := att.Whole().AnnotationText(); err != nil { // the status matters more
		s.log.Warn("how a pod was attached cannot be told in its annotation", "pod", att.Namespace+"/"+att.Name, "error", err)
	} else {
		whole.Metadata.Annotations[AnnotationAttachment] = report
	}
	return json.Marshal(whole)
}

// resultIn is what a record says of one of its networks.
func resultIn(att record.Attachment, n record.Network) (*types100.Result, error) {
	result, err := last(n)
	if err != nil || result != nil {
		return result, err
	}
	if att.Plan != nil {
		for _, i := range att.Plan.Interfaces {
			if i.Name == n.Interface && i.Kind != attach.Foreign {
				return resultOfPlanned(i, att.NetNS), nil
			}
		}
	}
	return nil, fmt.Errorf("network %s, interface %s: its record has no result", n.Name, n.Interface)
}
