package modeltest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
)

// An apiServer is the truth of the API. What it stores is never changed in
// place. Its methods are the effects of requests; when they happen is of link.
type apiServer struct {
	blind   bool // planted: it compares no versions
	version int64
	uids    int64
	down    bool
	ledgers table[*v1alpha1.PoolLedger]
	leases  table[*v1alpha1.AddressLease]
	nodes   table[*nodeObject]
	pools   table[*poolObject]
	pods    table[*podObject]
	uses    table[*use] // SpiderEndpoints, by pod
}

// A table is the objects of a kind and their history, which watches show.
type table[T any] struct {
	live   map[string]T
	events []event[T]
	base   int // events before which nobody's view goes back: the cluster as it was made
}

type event[T any] struct {
	name string
	gone bool
	to   T
}

func newAPIServer() *apiServer { return &apiServer{} }

func (t *table[T]) put(name string, to T) {
	if t.live == nil {
		t.live = map[string]T{}
	}
	t.live[name] = to
	t.events = append(t.events, event[T]{name: name, to: to})
}

func (t *table[T]) remove(name string) {
	if _, ok := t.live[name]; ok {
		delete(t.live, name)
		t.events = append(t.events, event[T]{name: name, gone: true})
	}
}

func (t *table[T]) names() []string { return slices.Sorted(maps.Keys(t.live)) }

func (a *apiServer) next() string {
	a.version++
	return fmt.Sprint(a.version)
}

func (a *apiServer) uid() types.UID {
	a.uids++
	return types.UID(fmt.Sprintf("uid-%d", a.uids))
}

func resource(of metav1.Object) schema.GroupResource {
	switch of.(type) {
	case *v1alpha1.PoolLedger:
		return schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "poolledgers"}
	default:
		return schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "addressleases"}
	}
}

// current is the object that an update is about, or why it may not.
func current[T metav1.Object](a *apiServer, t *table[T], o T) (T, error) {
	now, ok := t.live[o.GetName()]
	switch {
	case !ok:
		return now, apierrors.NewNotFound(resource(o), o.GetName())
	case o.GetUID() != "" && o.GetUID() != now.GetUID(),
		!a.blind && o.GetResourceVersion() != "" && o.GetResourceVersion() != now.GetResourceVersion():
		return now, apierrors.NewConflict(resource(o), o.GetName(), fmt.Errorf("the object has been modified"))
	}
	return now, nil
}

func (a *apiServer) ledger(name string) (*v1alpha1.PoolLedger, error) {
	l, ok := a.ledgers.live[name]
	if !ok {
		return nil, apierrors.NewNotFound(resource(l), name)
	}
	return l.DeepCopy(), nil
}

func (a *apiServer) createLedger(l *v1alpha1.PoolLedger) (*v1alpha1.PoolLedger, error) {
	if _, ok := a.ledgers.live[l.Name]; ok {
		return nil, apierrors.NewAlreadyExists(resource(l), l.Name)
	}
	l = l.DeepCopy()
	l.UID, l.ResourceVersion, l.Generation = a.uid(), a.next(), 1
	a.ledgers.put(l.Name, l)
	return l.DeepCopy(), nil
}

func (a *apiServer) updateLedger(l *v1alpha1.PoolLedger) (*v1alpha1.PoolLedger, error) {
	now, err := current(a, &a.ledgers, l)
	if err != nil {
		return nil, err
	}
	if l.Spec.Epoch < now.Spec.Epoch || l.Spec.Pool != now.Spec.Pool || l.Spec.Part != now.Spec.Part {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "PoolLedger"}, l.Name, nil)
	}
	l = l.DeepCopy()
	l.UID, l.ResourceVersion, l.Generation, l.DeletionTimestamp = now.UID, now.ResourceVersion, now.Generation, now.DeletionTimestamp
	if reflect.DeepEqual(l, now) {
		return l, nil
	}
	l.ResourceVersion = a.next()
	l.Generation++
	if l.DeletionTimestamp != nil && len(l.Finalizers) == 0 {
		a.ledgers.remove(l.Name)
		return l, nil
	}
	a.ledgers.put(l.Name, l)
	return l.DeepCopy(), nil
}

// deleteLedger takes the finalizer off, too.
func (a *apiServer) deleteLedger(l *v1alpha1.PoolLedger) error {
	if _, err := current(a, &a.ledgers, l); err != nil {
		return err
	}
	a.ledgers.remove(l.Name)
	return nil
}

func (a *apiServer) lease(name string) (*v1alpha1.AddressLease, error) {
	l, ok := a.leases.live[name]
	if !ok {
		return nil, apierrors.NewNotFound(resource(l), name)
	}
	return l.DeepCopy(), nil
}

func (a *apiServer) createLease(l *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	if _, ok := a.leases.live[l.Name]; ok {
		return nil, apierrors.NewAlreadyExists(resource(l), l.Name)
	}
	l = l.DeepCopy()
	l.Status = v1alpha1.AddressLeaseStatus{}
	l.UID, l.ResourceVersion, l.Generation = a.uid(), a.next(), 1
	a.leases.put(l.Name, l)
	return l.DeepCopy(), nil
}

func (a *apiServer) updateLease(l *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	now, err := current(a, &a.leases, l)
	if err != nil {
		return nil, err
	}
	to := now.DeepCopy()
	l.Spec.DeepCopyInto(&to.Spec)
	to.Annotations = maps.Clone(l.Annotations)
	if reflect.DeepEqual(to, now) {
		return to, nil
	}
	if !reflect.DeepEqual(to.Spec, now.Spec) {
		to.Generation++
	}
	to.ResourceVersion = a.next()
	a.leases.put(l.Name, to)
	return to.DeepCopy(), nil
}

func (a *apiServer) updateLeaseStatus(l *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	now, err := current(a, &a.leases, l)
	if err != nil {
		return nil, err
	}
	to := now.DeepCopy()
	to.Status = v1alpha1.AddressLeaseStatus{}
	l.Status.DeepCopyInto(&to.Status)
	if reflect.DeepEqual(to, now) {
		return to, nil
	}
	to.ResourceVersion = a.next()
	a.leases.put(l.Name, to)
	return to.DeepCopy(), nil
}

// touch is somebody else's write, of no meaning to us.
func (a *apiServer) touchLease(name string) {
	if l, ok := a.leases.live[name]; ok {
		to := l.DeepCopy()
		to.ResourceVersion = a.next()
		metav1.SetMetaDataLabel(&to.ObjectMeta, "touched", to.ResourceVersion)
		a.leases.put(name, to)
	}
}

func (a *apiServer) touchLedger(name string) {
	if l, ok := a.ledgers.live[name]; ok {
		to := l.DeepCopy()
		to.ResourceVersion = a.next()
		metav1.SetMetaDataLabel(&to.ObjectMeta, "touched", to.ResourceVersion)
		a.ledgers.put(name, to)
	}
}
