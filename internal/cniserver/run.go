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
	"railhead/internal/npwg"
)

const (
	// lookers is how many sandboxes are compared with the kernel at once.
	lookers = 8
	// repairers is how many sandboxes are put right at once.
	repairers = 8
	// lookEvery is how often it is looked whether the API server can be asked, and after
	// how long a sandbox is looked at or taken away again that could not be: twice as long
	// each time, and looksApart at most.
	lookEvery  = time.Second
	looksApart = time.Minute
)

// repaired tells of something that was other than an earlier run of the agent had left
// it. The error is why it is not put right; nil if it is, or needs nothing.
func (s *Server) repaired(att record.Attachment, what string, err error) {
	s.metrics.repairs.Inc()
	s.tellRepair(att, what, err)
}

// tellRepair is repaired of something that was counted before.
func (s *Server) tellRepair(att record.Attachment, what string, err error) {
	log := s.log.With("pod", att.Namespace+"/"+att.Name, "sandbox", att.ContainerID, "found", what)
	if err != nil {
		log.Warn("an attachment is not as it should be", "error", err)
		return
	}
	log.Info("an attachment was put right")
}

// Run compares records with the kernel, puts right what an earlier run left meanwhile,
// and serves until ctx ends, and returns its error once nothing of it goes on.
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
	s.restart(ctx)
	close(s.started)
	group.Go(func() error { s.republish(ctx); return nil })
	group.Go(func() error { s.tellReady(ctx); return nil })
	err := group.Wait()
	s.background.wait()
	s.prober.Wait()
	s.keepGone() // the next run knows nothing else of it
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
		s.log.Error("records of attachments are lost: DEL takes away what it finds of their pods; addresses that it cannot free are free some minutes after these are gone", "damage", damage)
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

// restart has every sandbox looked at, and put right what is not as it was left, while
// calls are served.
func (s *Server) restart(ctx context.Context) {
	looks, repairs := make(slots, lookers), make(slots, repairers)
	names := map[int]string{} // of the node's netdevs
	if links, err := net.Interfaces(); err == nil {
		for _, l := range links {
			names[l.Index] = l.Name
		}
	}
	for _, att := range s.config.Records.All() {
		what, err := s.broken(att)
		if err != nil {
			s.repaired(att, "it cannot be looked at; nothing was changed, and it is tried again", err)
		}
		if what == "" && att.State == record.Attached {
			att = s.renamed(att, names)
			s.claim(att)
		}
		s.unsettled.Add(1)
		s.background.run(func() {
			defer s.unsettled.Add(-1)
			s.putRight(ctx, att, looks, repairs)
		})
	}
}

// slots are how many may do something at once.
type slots chan struct{}

// take waits for a slot, and says whether there was one before ctx ended.
func (s slots) take(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false // the next run finds it
	}
}

func (s slots) free() { <-s }

// putRight looks at a sandbox until that can be done, and takes away what cannot stay
// until that is done.
func (s *Server) putRight(ctx context.Context, att record.Attachment, looks, repairs slots) {
	what, told := "", false
	untilDone(ctx, func() (err error) {
		what, err = s.look(ctx, att, looks)
		return err
	})
	if what == "" {
		return
	}
	untilDone(ctx, func() error {
		now, leave := s.enter(ctx, att, repairs)
		if leave == nil {
			return nil
		}
		defer leave()
		undo, stop := detached(ctx)
		defer stop()
		err := s.takeAway(undo, unasked(now), now, nil)
		switch {
		case !told:
			s.repaired(now, what, err)
		case err == nil:
			s.tellRepair(now, what, nil)
		default:
			s.log.Debug("an attachment is still not as it should be", "sandbox", now.ContainerID, "error", err)
		}
		if told = true; now.Newer != 0 {
			return nil // it is for that release to do
		}
		return err
	})
}

// untilDone does something until that is done, ever less often, or ctx ends.
func untilDone(ctx context.Context, do func() error) {
	for wait := lookEvery; do() != nil; wait = min(2*wait, looksApart) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// look says why a sandbox cannot stay; "" where it can, and of one that a call has
// taken away or attached anew meanwhile. The error says why it cannot be looked at.
func (s *Server) look(ctx context.Context, att record.Attachment, looks slots) (what string, err error) {
	now, leave := s.enter(ctx, att, looks)
	if leave == nil {
		return "", nil
	}
	defer leave()
	if what, err = s.broken(now); what == "" && err == nil {
		what = s.compare(ctx, now)
	}
	return what, err
}

// enter takes a slot and locks the sandbox of an attachment until leave, and returns its
// record as it is now. It waits for neither with the other in hand: plugins of others,
// which run in calls and to take a sandbox away, may be stuck for long. Without leave
// there is nothing to do: the attachment is gone, or ctx ended.
func (s *Server) enter(ctx context.Context, att record.Attachment, free slots) (now record.Attachment, leave func()) {
	for free.take(ctx) {
		if unlock, ok := s.sandboxes.tryLock(att.ContainerID); ok {
			leave = func() { unlock(); free.free() }
			if now, is := s.config.Records.Get(att.ContainerID); is && now.At.Equal(att.At) && ctx.Err() == nil {
				return now, leave
			}
			leave()
			break
		}
		free.free()
		unlock, err := s.sandboxes.lock(ctx, att.ContainerID)
		if err != nil {
			break
		}
		unlock() // and take both
	}
	return now, nil
}

// broken says why what is recorded cannot stay; "" where it can. The error is that
// nobody can tell.
func (s *Server) broken(att record.Attachment) (what string, err error) {
	if att.Newer != 0 {
		return fmt.Sprintf("its record is of a later release (%d)", att.Newer), nil
	}
	what, err = s.ended(att)
	switch {
	case what != "" || err != nil:
		return what, err
	case att.State == record.Attaching:
		return "it was half attached when the agent ended", nil
	case att.State == record.Detaching:
		return "it was half taken away when the agent ended", nil
	}
	return "", nil
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

// compare tells where the kernel has other than the record of a pod that runs. It
// returns why that cannot stay; "" where it can.
func (s *Server) compare(ctx context.Context, att record.Attachment) (what string) {
	if att.PlanLost {
		s.repaired(att, "its record is damaged; the pod runs, and nothing was changed", errPlanLost)
	}
	if att.Plan == nil {
		return ""
	}
	err := s.config.Attacher.Check(ctx, att.Plan)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, attach.ErrOtherNamespace):
		return "its network namespace is another one now"
	default:
		s.repaired(att, "the kernel has other than what was attached; the pod runs, and nothing was changed", err)
	}
	return ""
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
