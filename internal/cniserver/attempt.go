package cniserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/internal/attach/probe"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/ipam/holder"
	"railhead/internal/kernel/netns"
)

// attempt is one ADD on its way, and what it has done.
type attempt struct {
	call  call
	began time.Time
	pod   *metav1.PartialObjectMetadata // nil before it is known
	att   record.Attachment
	ns    *netns.NS
	path  string // by which this process reaches it
	list  []*network
	given given
	// synced says that the record is on disk; nil before it was written.
	synced chan error
	// addressed is closed once given is known, or will not be.
	addressed chan struct{}
	report    probe.Report
	targets   []probe.Target
	// quarantine are addresses that others were seen to have.
	quarantine map[netip.Addr]string
}

// step notes how long something took.
func (a *attempt) step(s *Server, name string, began time.Time) {
	took := time.Since(began)
	a.att.Report.Steps = append(a.att.Report.Steps, record.Step{Name: name, Took: took})
	s.metrics.steps.WithLabelValues(name).Observe(took.Seconds())
}

// podName is the pod's name for people.
func (a *attempt) podName() string {
	return cmp.Or(a.call.pod.namespace, "?") + "/" + cmp.Or(a.call.pod.name, "?")
}

// key names the pod's addresses.
func (a *attempt) key() holder.Key {
	return holder.Key{PodUID: a.pod.UID, Sandbox: a.call.ContainerID}
}

// begin opens the pod's namespace and starts its record.
func (s *Server) begin(ctx context.Context, c call) (*attempt, error) {
	a := &attempt{call: c, began: s.config.Now(), addressed: make(chan struct{})}
	if err := c.pod.named(); err != nil {
		return a, err
	}
	pod, err := s.config.Cluster.Pod(ctx, c.pod.namespace, c.pod.name, c.pod.uid)
	if err != nil {
		code := cnicall.CodeTryAgain
		if apierrors.IsNotFound(err) {
			code = cnicall.CodeInternal // it does not come back
		}
		return a, coded(code, err)
	}
	a.pod = pod
	if a.path, err = s.config.NetNS(c.NetNS); err == nil {
		a.ns, err = netns.Open(a.path)
	}
	if err != nil {
		return a, coded(cnicall.CodeNamespace, podNamed{fmt.Errorf("pod %s/%s: CNI_NETNS: %q: %w", pod.Namespace, pod.Name, c.NetNS, err)})
	}
	a.att = record.Attachment{
		ContainerID: c.ContainerID, PodUID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name,
		NetNS: c.NetNS, ID: a.ns.ID(), BootID: s.config.BootID, At: a.began, State: record.Attaching,
	}
	return a, nil
}

// end closes what the attempt keeps open.
func (a *attempt) end() {
	if a.ns != nil {
		_ = a.ns.Close() // it was read from only
	}
}

// note writes the record as it is now, for an agent that takes over.
func (s *Server) note(a *attempt) error {
	_, err := s.put(a.att)
	return s.tolerate(a, err)
}

// tolerate lets a pod go without a record that has the default network alone:
// that can be taken away without one.
func (s *Server) tolerate(a *attempt, err error) error {
	if err == nil || hasOwn(a.pod) || a.att.Plan != nil {
		return err
	}
	s.log.Warn("a pod has no record of its attachment", "pod", a.podName(), "error", err)
	return nil
}

// keep writes the record as it is now, and has it go to the disk meanwhile.
func (s *Server) keep(a *attempt) error {
	sync, err := s.put(a.att)
	if err != nil {
		return err
	}
	synced := make(chan error, 1)
	a.synced = synced
	s.background.run(func() { synced <- sync() })
	return nil
}

// await waits until what the record said first is on disk. All that it said later
// is written, too, and outlives this process: what a crash of the whole node
// could lose of it, ends with the node.
func (s *Server) await(ctx context.Context, a *attempt) error {
	if a.synced == nil {
		return nil
	}
	select {
	case err := <-a.synced:
		return s.tolerate(a, s.disk(err))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// put writes a record.
func (s *Server) put(att record.Attachment) (sync func() error, err error) {
	if sync, err = s.config.Records.Put(att); err == nil {
		s.mu.Lock()
		s.pods[att.ContainerID] = att.PodUID
		s.mu.Unlock()
	}
	return sync, s.disk(err)
}

// disk notes what came of writing a record.
func (s *Server) disk(err error) error {
	s.mu.Lock()
	s.diskErr = err
	s.mu.Unlock()
	if err != nil {
		return coded(cnicall.CodeTryAgain, fmt.Errorf("the record of the attachment cannot be written: %w", err))
	}
	return nil
}

// starts notes that a sandbox is being attached, for the plugins that call us back.
func (s *Server) starts(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[a.call.ContainerID] = a
}

func (s *Server) ends(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, a.call.ContainerID)
}

// attemptOf is what is being attached to a sandbox; nil if nothing is.
func (s *Server) attemptOf(sandbox string) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[sandbox]
}

// detached is a context for what has to be done whatever becomes of a call.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), undoMost)
}

// undoMost is how long taking away may last. Plugins of others are run in it.
const undoMost = 90 * time.Second

// failed joins an error with what went wrong when what was done was undone.
func failed(err, undo error) error {
	if undo == nil {
		return err
	}
	return coded(codeOf(err), errors.Join(err, fmt.Errorf("and not all of it could be undone: %w", undo)))
}
