package address

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/ipam/holder"
)

const (
	// collectEvery is how often what pods left behind is looked for. Most is
	// released before by the container runtime's word.
	collectEvery = time.Minute

	// collectAfter is how long a pod must have been seen to be gone for. A container
	// runtime gives up setting up a pod before that (after 4 minutes, if the kubelet
	// is not told otherwise): one that was deleted meanwhile may get its address
	// until then, while nothing shows that it is there.
	collectAfter = 5 * time.Minute
)

// collector releases what belongs to pods that are gone: where they are
// deleted, have ended, or another one has their name. Before it does, the API
// server has said so twice, five minutes apart, and once more of that pod alone,
// no network namespace of the node has any of the addresses, and the pod has no
// process (those of virtual machines and of user-space drivers have addresses
// that no namespace shows). While one of these cannot be asked about a pod, it
// keeps its addresses. One goroutine uses it.
type collector struct {
	service *Service
	gone    map[holder.Key]time.Time // since when pods were seen to be gone
	isTold  bool                     // that it cannot be done
}

// run collects until ctx ends, or until the node is another one.
func (c *collector) run(ctx context.Context, uid types.UID) error {
	again := time.NewTicker(collectEvery)
	defer again.Stop()
	for {
		if err := c.service.checkNode(ctx, uid); err != nil {
			return err
		}
		if err := c.collect(ctx); ctx.Err() == nil {
			c.told(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}

// told logs why nothing could be released, once until it could again.
func (c *collector) told(err error) {
	if err != nil && !c.isTold {
		c.service.log.Warn("which pods are gone cannot be told for sure, so all keep their addresses", "error", err)
	}
	c.isTold = err != nil
}

// collect looks once at all that there is.
func (c *collector) collect(ctx context.Context) error {
	used, lookErr := c.service.inUse()
	if lookErr == nil {
		c.service.holder.Occupied(used)
	}
	candidates, err := c.candidates(ctx, c.service.holder.Assignments())
	if err != nil {
		return errors.Join(err, lookErr)
	}
	if lookErr != nil || len(candidates) == 0 {
		return lookErr
	}
	processes, err := c.service.config.Processes()
	if err != nil {
		return fmt.Errorf("processes of pods: %w", err)
	}
	var errs []error // of one pod, which keeps no other's
	for _, a := range candidates {
		if pids := processes[a.PodUID]; len(pids) > 0 {
			c.service.log.Debug("a pod is gone and has processes still", "pod", a.Pod, "process", pids[0])
			continue
		}
		errs = append(errs, c.release(ctx, a, used))
	}
	return errors.Join(errs...)
}

// candidates notes which assignments have no pod now, and returns those of them
// that had none for long enough.
func (c *collector) candidates(ctx context.Context, assignments []holder.Assignment) ([]holder.Assignment, error) {
	gone := map[holder.Key]time.Time{}
	defer func() { c.gone = gone }()
	if len(assignments) == 0 {
		return nil, nil
	}
	alive, err := c.service.client.livePods(ctx)
	if err != nil {
		gone = c.gone // nothing was seen
		return nil, err
	}
	var list []holder.Assignment
	now := time.Now()
	for _, a := range assignments {
		if a.PodUID == "" || alive[a.PodUID] {
			continue
		}
		since, ok := c.gone[a.Key]
		if !ok {
			since = now
		}
		gone[a.Key] = since
		if ok && now.Sub(since) >= collectAfter {
			list = append(list, a)
		}
	}
	return list, nil
}

// release releases what a pod left, all of it, unless the pod or any of its
// addresses is there after all.
func (c *collector) release(ctx context.Context, a holder.Assignment, used map[netip.Addr]string) error {
	for _, have := range a.Addresses {
		if where, ok := used[have.Prefix.Addr()]; ok {
			c.service.log.Debug("a pod is gone and its addresses are still in use", "pod", a.Pod, "address", have.Prefix.Addr(), "in", where)
			return nil
		}
	}
	isAlive, err := c.service.client.isAlive(ctx, a)
	if err != nil || isAlive {
		return err
	}
	if err := c.service.release(a.Key, a.Sequence, nil); err != nil {
		return fmt.Errorf("release what pod %s left: %w", a.Pod, err)
	}
	c.service.metrics.collected.Inc()
	c.service.log.Info("released what a pod left behind", "pod", a.Pod, "pod_uid", a.PodUID, "addresses", addressesOf(&a))
	return nil
}

// hasNotEnded selects pods that run or will.
const hasNotEnded = "status.phase!=Succeeded,status.phase!=Failed"

// mirror is the annotation of the pod that stands in the API server for a
// static one, with the UID that the node has for that.
const mirror = "kubernetes.io/config.mirror"

// livePods returns the UIDs of the node's pods that have not ended, from the API
// server's memory, which may be some seconds old.
func (c *client) livePods(ctx context.Context) (map[types.UID]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	list, err := c.pods().List(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("spec.nodeName", c.node).String() + "," + hasNotEnded,
		ResourceVersion: fromMemory,
	})
	if err != nil {
		return nil, fmt.Errorf("pods of node %s: %w", c.node, err)
	}
	return uids(list), nil
}

// isAlive reads whether a pod is there and has not ended, live. No rights but
// those to list pods are needed, nor their specification and status.
func (c *client) isAlive(ctx context.Context, a holder.Assignment) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	list, err := c.pods().Namespace(a.Pod.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", a.Pod.Name).String() + "," + hasNotEnded,
	})
	if err != nil {
		return false, fmt.Errorf("pod %s: %w", a.Pod, err)
	}
	return uids(list)[a.PodUID], nil
}

// uids returns the UIDs of pods, of static ones both.
func uids(list *metav1.PartialObjectMetadataList) map[types.UID]bool {
	all := make(map[types.UID]bool, len(list.Items))
	for i := range list.Items {
		all[list.Items[i].UID] = true
		if hash := list.Items[i].Annotations[mirror]; hash != "" {
			all[types.UID(hash)] = true
		}
	}
	return all
}
