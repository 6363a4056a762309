package standin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/hack/cluster/standin/deviceplugin"
)

// life is a pod from when it is bound to a node to when its object is gone. It is one goroutine that goes from step to
// step; what others tell it are ends of contexts, each within the one before. They end waiting: what has been begun,
// plugins and requests, is only interrupted by the end of the run.
type life struct {
	*pod
	fleet *fleet
	node  *node

	all  context.Context // ends with the run: nothing is tidied up any more
	own  context.Context // ends with the pod's object: nobody can be told any more
	gone context.CancelFunc
	told context.Context // ends when the pod is told to end
	stop func(grace time.Duration)

	sandbox sandbox   // from the first attempt to connect it until it is disconnected
	since   meta.Time // when it was connected; zero before
}

// errToldToEnd is why the context told ends: with a grace.
type errToldToEnd struct{ grace time.Duration }

func (e errToldToEnd) Error() string { return fmt.Sprintf("told to end within %s", e.grace) }

// follow begins the life of a pod of one of our nodes, or tells it what changed.
func (f *fleet) follow(ctx context.Context, p *core.Pod) {
	n, ours := f.nodes[p.Spec.NodeName]
	if !ours {
		return
	}
	f.mu.Lock()
	l := f.pods[p.UID]
	if l == nil {
		l = f.begin(ctx, n, p)
	}
	f.mu.Unlock()
	if p.DeletionTimestamp != nil {
		l.stop(grace(p))
	}
}

// begin starts a life. The fleet is locked.
func (f *fleet) begin(ctx context.Context, n *node, from *core.Pod) *life {
	p, err := newPod(from)
	if err != nil {
		f.Log.WarnContext(ctx, "pod's behaviour", "pod", p.String(), "error", err)
	}
	l := &life{pod: p, fleet: f, node: n, all: ctx}
	l.own, l.gone = context.WithCancel(ctx)
	told, tell := context.WithCancelCause(l.own)
	l.told, l.stop = told, func(grace time.Duration) { tell(errToldToEnd{grace}) }
	f.pods[p.uid] = l
	over := ended(from)
	f.live.Go(func() {
		defer f.forget(l)
		l.live(over)
	})
	return l
}

// forget ends what begin began.
func (f *fleet) forget(l *life) {
	l.gone()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pods, l.uid)
}

// followed are the pods that are being followed.
func (f *fleet) followed() []types.UID {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]types.UID, 0, len(f.pods))
	for uid := range f.pods {
		all = append(all, uid)
	}
	return all
}

// vanished tells a life that its pod's object is gone.
func (f *fleet) vanished(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.pods[uid]; l != nil {
		l.gone()
	}
}

// live goes through a pod's life; one that is over is only waiting to be deleted. It ends when the watch says that the
// object is gone: whatever that says before must find it.
func (l *life) live(over bool) {
	if !over {
		l.fleet.tally.pods.Add(1)
		l.work()
		l.fleet.tally.pods.Add(-1)
	}
	<-l.told.Done()
	l.insist(l.own, "removal", l.remove)
	<-l.own.Done()
}

// work is a pod's life until it is over: its devices and its network are then free again.
func (l *life) work() {
	if err := l.node.devices.Admit(l.own, l.wishes()); err != nil {
		l.reject(err)
		return
	}
	defer l.node.devices.Release(string(l.uid))
	l.insist(l.told, "start", l.start)
	var code int32 = killed
	if !l.since.IsZero() {
		l.fleet.tally.running.Add(1)
		code = l.untilOver()
		l.fleet.tally.running.Add(-1)
	}
	l.insist(l.all, "end", func() error { return l.end(code) })
}

// wishes is what device plugins are asked for.
func (l *life) wishes() deviceplugin.Pod {
	return deviceplugin.Pod{UID: string(l.uid), Namespace: l.namespace, Name: l.name, Containers: l.devices}
}

// reject ends a pod whose node has no devices for it, as a kubelet does.
func (l *life) reject(why error) {
	const reason = "UnexpectedAdmissionError"
	l.fleet.tally.failed.Add(1)
	l.event(reason, why)
	l.insist(l.own, "status", func() error { return l.report(rejected(reason, why.Error(), meta.Now())) })
}

// insist does something when it is its turn, again and again until it succeeds or the context ends.
func (l *life) insist(until context.Context, what string, do func() error) {
	f := l.fleet
	f.insist(until, what, l.String(), func(ctx context.Context) error {
		select {
		case f.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-f.slots }()
		return do()
	})
}

// start connects the pod and says that it runs.
func (l *life) start() error {
	if l.since.IsZero() {
		if err := l.connect(); err != nil {
			l.event("FailedCreatePodSandBox", err)
			return err
		}
		l.since = meta.Now()
	}
	if err := l.node.devices.Prepare(l.all, string(l.uid)); err != nil {
		l.event("Failed", err)
		return err
	}
	return l.report(l.running(l.node.hosts(), l.sandbox.ips, l.since))
}

// connect makes the pod's network namespace and has it filled. A pod of the node's own network has none.
func (l *life) connect() error {
	if l.hostNetwork {
		l.sandbox.ips = l.node.hosts()
		return nil
	}
	if err := l.disconnect(); err != nil {
		return fmt.Errorf("after an earlier attempt: %w", err)
	}
	id := newSandboxID()
	l.sandbox = sandbox{id: id, path: filepath.Join(l.node.path(podNamespaces), "cni-"+id[:32])}
	err := newNamespace(l.sandbox.path)
	if err == nil {
		l.sandbox.ips, err = l.node.network.attach(l.all, l.node.ns, l.sandbox, l.pod)
	}
	if err != nil {
		return errors.Join(err, l.disconnect())
	}
	return nil
}

// disconnect undoes connect, as far as it got.
func (l *life) disconnect() error {
	if l.sandbox.path == "" {
		return nil
	}
	if err := l.node.network.detach(l.all, l.node.ns, l.sandbox, l.pod); err != nil {
		return fmt.Errorf("disconnect: %w", err)
	}
	if err := endNamespace(l.sandbox.path); err != nil {
		return err
	}
	l.sandbox = sandbox{}
	return nil
}

// killed is the exit code of a program that was not given the time to end.
const killed = 128 + 9

// untilOver waits until the program that the pod does not have would have ended, and returns its exit code.
func (l *life) untilOver() int32 {
	var byItself <-chan time.Time
	if l.behaviour.runsFor > 0 && !l.restarts {
		timer := time.NewTimer(time.Until(l.since.Add(l.behaviour.runsFor)))
		defer timer.Stop()
		byItself = timer.C
	}
	select {
	case <-byItself:
		return l.behaviour.exitCode
	case <-l.told.Done():
	}
	var told errToldToEnd
	if !errors.As(context.Cause(l.told), &told) {
		return 0 // there is nobody left to tell
	}
	if l.behaviour.stopsIn > told.grace {
		wait(l.own, told.grace)
		return killed
	}
	wait(l.own, l.behaviour.stopsIn)
	return 0
}

// end says that the pod's containers have ended, unless its object is gone, and takes its network down.
func (l *life) end(code int32) error {
	if l.own.Err() == nil {
		now := meta.Now()
		if l.since.IsZero() {
			l.since = now
		}
		if err := l.report(l.finished(code, l.since, now)); err != nil {
			return err
		}
	}
	if err := l.disconnect(); err != nil {
		l.event("FailedKillPod", err)
		return err
	}
	return nil
}

// remove removes the pod's object.
func (l *life) remove() error {
	now := int64(0)
	err := l.fleet.client.CoreV1().Pods(l.namespace).Delete(l.all, l.name, meta.DeleteOptions{GracePeriodSeconds: &now, Preconditions: l.preconditions()})
	return unlessGone(err)
}

// report patches the pod's status.
func (l *life) report(s *core.PodStatus) error {
	patch, err := l.patch(s)
	if err != nil {
		return err
	}
	_, err = l.fleet.client.CoreV1().Pods(l.namespace).Patch(l.all, l.name, types.StrategicMergePatchType, patch, meta.PatchOptions{}, "status")
	return unlessGone(err)
}

// unlessGone is the error, unless it says that the pod is gone, or is another one of the same name by now.
func unlessGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
