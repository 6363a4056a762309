package address

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam/selection"
)

// isLeft says whether nobody but us would end a SpiderEndpoint: no pod owns it,
// or a finalizer holds it.
func isLeft(e *v2beta1.SpiderEndpoint) bool {
	return len(e.OwnerReferences) == 0 || e.DeletionTimestamp != nil
}

// identityOf is whose addresses an endpoint has if they outlive the pod, the zero
// Identity if they do not. Those that Spiderpool left say it by their owner.
func identityOf(e *v2beta1.SpiderEndpoint) selection.Identity {
	if text := e.Annotations[v1alpha1.AnnotationIdentity]; text != "" {
		id, _ := selection.ParseIdentity(text)
		return id
	}
	switch owner := e.Status.OwnerControllerName; e.Status.OwnerControllerType {
	case "StatefulSet":
		digits, ok := strings.CutPrefix(e.Name, owner+"-")
		ordinal, err := strconv.ParseInt(digits, 10, 64)
		if ok && err == nil && ordinal >= 0 {
			return selection.Identity{Kind: selection.KindStatefulSet, Namespace: e.Namespace, Name: owner, Ordinal: ordinal}
		}
	case "VirtualMachine", "VirtualMachineInstance":
		return selection.Identity{Kind: selection.KindVirtualMachine, Namespace: e.Namespace, Name: e.Name}
	}
	return selection.Identity{}
}

// podOf is the name of an endpoint's pod.
func podOf(e *v2beta1.SpiderEndpoint) types.NamespacedName {
	name := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
	if pod := e.Annotations[v1alpha1.AnnotationPod]; pod != "" {
		name.Name = pod
	}
	return name
}

// namedPod reads "namespace/name".
func namedPod(text string) (types.NamespacedName, bool) {
	namespace, name, ok := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, ok && namespace != "" && name != ""
}

// lookAtEndpoints ends those whose pods are gone for good.
func (s *sweeper) lookAtEndpoints(ctx context.Context, now time.Time) error {
	defer s.endpoints.looked()
	var errs []error
	for _, e := range s.cluster.endpointList(isLeft) {
		if err := s.lookAtEndpoint(ctx, e, now); err != nil {
			errs = append(errs, fmt.Errorf("SpiderEndpoint %s: %w", client.ObjectKeyFromObject(e), err))
		}
	}
	return errors.Join(errs...)
}

func (s *sweeper) lookAtEndpoint(ctx context.Context, e *v2beta1.SpiderEndpoint, now time.Time) error {
	uid, there, err := podUID(ctx, s.cache, podOf(e))
	switch {
	case err != nil:
		return err
	case there && isSame(uid, e):
		s.endpoints.there(e.UID)
		return nil
	case !s.endpoints.missing(e.UID, now) || !s.mayEnd(ctx, e):
		return nil
	}
	current := &v2beta1.SpiderEndpoint{}
	if err := s.live.Get(ctx, client.ObjectKeyFromObject(e), current); err != nil || current.UID != e.UID {
		return client.IgnoreNotFound(err)
	}
	uid, there, err = podUID(ctx, s.live, podOf(current))
	if err != nil || there && isSame(uid, current) {
		return err
	}
	s.tell("a SpiderEndpoint ends: its pod is gone for good", "endpoint", client.ObjectKeyFromObject(e).String(), "uid", e.Status.Current.UID)
	return ignoreRace(s.end(ctx, current))
}

// isSame says whether a pod is the one that an endpoint is about.
func isSame(uid types.UID, e *v2beta1.SpiderEndpoint) bool {
	return e.Status.Current.UID == "" || e.Status.Current.UID == string(uid)
}

// mayEnd says whether an endpoint without its pod has no further use: somebody
// deleted it; or it was of an identity that is gone; or the configuration has
// those of pods that are gone cleaned up.
func (s *sweeper) mayEnd(ctx context.Context, e *v2beta1.SpiderEndpoint) bool {
	id := identityOf(e)
	switch {
	case e.DeletionTimestamp != nil:
		return true
	case id.Kind != "" && s.ids.isKept(id):
		return s.isIdentityGoneNow(ctx, id.String())
	case e.Annotations[v1alpha1.AnnotationIdentity] != "" && id.Kind == "":
		return false // nobody knows whose it is
	}
	return s.config().CleanEndpoints || id.Kind != ""
}

// end deletes an endpoint as it was read, past the finalizer that it has from
// Spiderpool.
func (s *sweeper) end(ctx context.Context, e *v2beta1.SpiderEndpoint) error {
	before := e.DeepCopy()
	if controllerutil.RemoveFinalizer(e, v2beta1.Finalizer) {
		if err := s.api.Patch(ctx, e, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	if before.DeletionTimestamp != nil {
		return nil
	}
	return s.api.Delete(ctx, e, exactly(e))
}

// unclaim takes a node's name off endpoints whose identity has left it: its agent
// could not, as where the node is gone, and no agent may write the endpoints of
// another node.
func (s *sweeper) unclaim(ctx context.Context) error {
	claimed := s.cluster.endpointList(func(e *v2beta1.SpiderEndpoint) bool {
		return len(e.OwnerReferences) == 0 && e.DeletionTimestamp == nil && e.Status.Current.Node != "" && identityOf(e).Kind != ""
	})
	if len(claimed) == 0 {
		return nil
	}
	ledgers := s.pinLedgers()
	var errs []error
	for _, e := range claimed {
		id := identityOf(e).String()
		if has, on := isOn(ledgers[id], id, e.Status.Current.Node); !has || on {
			continue
		}
		if err := s.unclaimOne(ctx, e, id, ledgers[id]); err != nil {
			errs = append(errs, fmt.Errorf("SpiderEndpoint %s: %w", client.ObjectKeyFromObject(e), err))
		}
	}
	return errors.Join(errs...)
}

// pinLedgers are the ledgers in which each identity has addresses.
func (s *sweeper) pinLedgers() map[string][]*v1alpha1.PoolLedger {
	found := map[string][]*v1alpha1.PoolLedger{}
	for _, ledger := range s.cluster.ledgerList() {
		for i := range ledger.Spec.Runs {
			id := ledger.Spec.Runs[i].Identity
			if list := found[id]; id != "" && (len(list) == 0 || list[len(list)-1] != ledger) {
				found[id] = append(list, ledger)
			}
		}
	}
	return found
}

// isOn says whether ledgers have addresses of an identity, and whether any is on
// a node, or on its way there.
func isOn(ledgers []*v1alpha1.PoolLedger, id, node string) (has, on bool) {
	for _, ledger := range ledgers {
		for i := range ledger.Spec.Runs {
			if run := &ledger.Spec.Runs[i]; run.Identity == id {
				has, on = true, on || run.Node == node || run.Target == node
			}
		}
	}
	return has, on
}

// unclaimOne asks the API server again: the endpoint may be newer than the
// ledgers that were looked at.
func (s *sweeper) unclaimOne(ctx context.Context, e *v2beta1.SpiderEndpoint, id string, known []*v1alpha1.PoolLedger) error {
	var ledgers []*v1alpha1.PoolLedger
	for _, l := range known {
		ledger := &v1alpha1.PoolLedger{}
		if err := s.live.Get(ctx, client.ObjectKeyFromObject(l), ledger); err != nil {
			return client.IgnoreNotFound(err)
		}
		ledgers = append(ledgers, ledger)
	}
	if has, on := isOn(ledgers, id, e.Status.Current.Node); !has || on {
		return nil
	}
	free := e.DeepCopy()
	free.Status.Current.Node = ""
	return ignoreRace(s.api.Patch(ctx, free, client.MergeFromWithOptions(e, client.MergeFromWithOptimisticLock{})))
}

// ignoreRace takes it for no fault that somebody was quicker: the next look sees what they did.
func ignoreRace(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}
