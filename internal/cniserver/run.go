package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/internal/agent/cluster"
	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/ipam/journal"
	"railhead/internal/kernel/netns"
	"railhead/internal/npwg"
)

// Repair is something that was other than an earlier run of the agent had left
// it.
type Repair struct {
	At      time.Time
	Sandbox string
	Pod     string // namespace/name
	What    string
	Err     error // why it is not put right; nil if it is, or needs nothing
}

const (
	// repairers is how many sandboxes are put right at once.
	repairers = 8
	// repairsKept is how many repairs are remembered.
	repairsKept = 1000
	// lookEvery is how often it is looked whether the API server can be asked.
	lookEvery = time.Second
)

// Repairs are what was found and put right since the server began, oldest first.
func (s *Server) Repairs() []Repair {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Repair(nil), s.repairs...)
}

// repaired notes a repair.
func (s *Server) repaired(att record.Attachment, what string, err error) {
	r := Repair{At: s.config.Now(), Sandbox: att.ContainerID, Pod: att.Namespace + "/" + att.Name, What: what, Err: err}
	s.mu.Lock()
	if s.repairs = append(s.repairs, r); len(s.repairs) > repairsKept {
		s.repairs = s.repairs[1:]
	}
	s.mu.Unlock()
	s.metrics.repairs.Inc()
	if err != nil {
		s.log.Warn("an attachment is not as it should be", "pod", r.Pod, "sandbox", r.Sandbox, "found", what, "error", err)
		return
	}
	s.log.Info("an attachment was put right", "pod", r.Pod, "sandbox", r.Sandbox, "found", what)
}

// Run compares records with the kernel and puts right what an earlier run left,
// then serves until ctx ends, and returns its error once nothing of it goes on.
// Calls for a sandbox that is being put right wait for that alone. Calls that are
// under way when ctx ends are waited for: who serves them ends first, and the
// records are closed after Run.
func (s *Server) Run(ctx context.Context) error {
	s.tellDamage()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { s.publisher.run(ctx); return nil })
	group.Go(func() error { return s.watch(ctx) })
	s.restart(ctx, group)
	close(s.started)
	group.Go(func() error { s.republish(ctx); return nil })
	group.Go(func() error { s.tellReady(ctx); return nil })
	err := group.Wait()
	s.background.wait()
	s.prober.Wait()
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return context.Cause(ctx)
	}
	return err
}

// tellDamage logs what records may be lost. That the last line is not whole is what
// a node leaves that lost its power.
func (s *Server) tellDamage() {
	switch damage := s.config.Records.Damage(); damage {
	case journal.DamageNone:
	case journal.DamageTail:
		s.log.Info("the last record of an attachment was not written to its end", "damage", damage)
	default:
		s.log.Error("records of attachments are lost: DEL takes away what it finds of their pods, and addresses are free some minutes after these are gone", "damage", damage)
	}
}

// watch sees others claim addresses until ctx ends. Without it pods are attached
// all the same.
func (s *Server) watch(ctx context.Context) error {
	if err := s.watcher.Run(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("nobody watches who claims addresses of pods", "error", err)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// restart locks every sandbox that is not as it was left, and puts these right
// meanwhile.
func (s *Server) restart(ctx context.Context, group *errgroup.Group) {
	slots := make(chan struct{}, repairers)
	names := map[int]string{} // of the node's netdevs
	if links, err := net.Interfaces(); err == nil {
		for _, l := range links {
			names[l.Index] = l.Name
		}
	}
	for _, att := range s.config.Records.All() {
		unlock, free := s.sandboxes.tryLock(att.ContainerID)
		if !free {
			continue // nobody is served yet
		}
		if what := s.broken(att); what != "" {
			group.Go(func() error {
				defer unlock()
				slots <- struct{}{}
				defer func() { <-slots }()
				if ctx.Err() != nil {
					return nil // the next run finds it
				}
				undo, stop := detached(ctx)
				defer stop()
				s.repaired(att, what, s.takeAway(undo, unasked(att), att, nil))
				return nil
			})
			continue
		}
		att = s.renamed(att, names)
		s.claim(att)
		group.Go(func() error {
			defer unlock()
			slots <- struct{}{}
			defer func() { <-slots }()
			s.compare(ctx, att)
			return nil
		})
	}
}

// broken says why what is recorded cannot stay; "" where it can.
func (s *Server) broken(att record.Attachment) string {
	if att.Newer != 0 {
		return fmt.Sprintf("its record is of a later release (%d)", att.Newer)
	}
	if att.BootID != s.config.BootID {
		return "the node was started again since it was attached"
	}
	id, err := netns.Stat(s.config.NetNS(att.NetNS))
	switch {
	case err != nil:
		return "its network namespace is gone"
	case id != att.ID:
		return "its network namespace is another one now"
	case att.State == record.Attaching:
		return "it was half attached when the agent ended"
	case att.State == record.Detaching:
		return "it was half taken away when the agent ended"
	}
	return ""
}

// renamed tells which netdevs of the node have other names than when interfaces
// were made on them, and returns the record with these.
func (s *Server) renamed(att record.Attachment, names map[int]string) record.Attachment {
	if att.Plan == nil {
		return att
	}
	var told []string
	plan := *att.Plan // records are not changed
	plan.Interfaces = slices.Clone(plan.Interfaces)
	for n := range plan.Interfaces {
		i := &plan.Interfaces[n]
		if i.Kind == attach.Foreign || i.Kind == attach.HostDevice || i.InContainer || i.ParentIndex == 0 {
			continue
		}
		name := names[i.ParentIndex]
		if name == "" || name == i.Parent {
			continue
		}
		told = append(told, fmt.Sprintf("%s below %s is %s now", i.Parent, i.Name, name))
		i.Parent = name
	}
	if len(told) > 0 {
		att.Plan = &plan
		_, err := s.put(att)
		s.repaired(att, "netdevs of the node have other names: "+strings.Join(told, ", "), err)
	}
	return att
}

// errPlanLost is of a record with a damaged line.
var errPlanLost = errors.New("what was made for it is not known any more: its links go with it, and what the node has of it must be looked for")

// compare tells where the kernel has other than the record of a pod that runs.
func (s *Server) compare(ctx context.Context, att record.Attachment) {
	if att.PlanLost {
		s.repaired(att, "its record is damaged; the pod runs, and nothing was changed", errPlanLost)
	}
	if att.Plan == nil {
		return
	}
	err := s.config.Attacher.Check(ctx, att.Plan)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, attach.ErrOtherNamespace):
		undo, stop := detached(ctx)
		defer stop()
		s.repaired(att, "its network namespace is another one now", s.takeAway(undo, unasked(att), att, nil))
	default:
		s.repaired(att, "the kernel has other than what was attached; the pod runs, and nothing was changed", err)
	}
}

// republish sends what an earlier run did not: status of pods that have none, or
// that of a sandbox from before this one.
func (s *Server) republish(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for s.config.Cluster.Current() != nil { // of pods that are not told of, it would be forgotten
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	for _, att := range s.config.Records.All() {
		if att.State != record.Attached || len(att.Answer) == 0 || s.attemptOf(att.ContainerID) != nil {
			continue
		}
		pod, err := s.config.Cluster.Pod(ctx, att.Namespace, att.Name, att.PodUID)
		if err != nil {
			continue // it is gone, or its DEL comes
		}
		if hasOwn(pod) && string(pod.UID) == att.PodUID && !s.isPublished(att, pod) {
			s.publish(att)
		}
	}
}

// isPublished says whether a pod has the report that we would write, and so the
// status, which is written with it and which others may add to.
func (s *Server) isPublished(att record.Attachment, pod *metav1.PartialObjectMetadata) bool {
	var want metav1.PartialObjectMetadata
	body, err := s.statusPatch(att)
	if err == nil {
		err = json.Unmarshal(body, &want)
	}
	if err != nil {
		return false // the publisher says what is wrong with it
	}
	report, said := want.Annotations[AnnotationAttachment]
	if !said { // it was too long
		_, said = pod.Annotations[npwg.AnnotationStatus]
		return said
	}
	return pod.Annotations[AnnotationAttachment] == cluster.Digest(report)
}
