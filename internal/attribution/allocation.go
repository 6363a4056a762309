package attribution

import "railhead/internal/inventory"

// allocation is what the kubelet says of a device. It is replaced, never
// changed, once it is published.
type allocation struct {
	pod      *Pod // with namespace and name alone
	wasKnown bool // to the source of pods, since the kubelet says this
}

// tenancy is a device that is, or was, in the network namespace of a pod.
type tenancy struct {
	pod  podName // empty where only its UID was known
	said podName // what the kubelet said of the device then; empty where it said nothing
}

// podName is a pod as the kubelet names it.
type podName struct{ namespace, name string }

// isOver tells whether what the kubelet says is about the pod that has left.
func (t tenancy) isOver(said podName) bool { return said == t.said || said == t.pod }

// allocate notes what the kubelet says now. The kubelet is asked every few
// seconds, and some go on to list pods that ended; so what it says of a pod
// that was seen to leave a device counts no more, until it says something else.
func (o *owners) allocate(a *Attributor, before *owners, d *inventory.Device) {
	said := a.said(d)
	if pod := o.tenant(d); pod != nil {
		known := a.newest(pod)
		name := podName{known.Namespace, known.Name}
		if known.Namespace == "" {
			name = before.tenancies[d.ID].pod
		}
		o.tenancies[d.ID] = tenancy{pod: name, said: said}
		return
	}
	if left, ok := before.tenancies[d.ID]; ok && left.isOver(said) {
		left.said = said
		o.tenancies[d.ID] = left
		return
	}
	if said == (podName{}) {
		return
	}
	now := &allocation{pod: &Pod{Namespace: said.namespace, Name: said.name}}
	if was := before.allocated[d.ID]; was != nil && *was.pod == *now.pod {
		now.pod, now.wasKnown = was.pod, was.wasKnown
	}
	now.wasKnown = now.wasKnown || a.newest(now.pod) != now.pod
	o.allocated[d.ID] = now
}

// said returns what the kubelet says of a device now; empty where it says
// nothing.
func (a *Attributor) said(d *inventory.Device) podName {
	if a.options.Allocations == nil {
		return podName{}
	}
	namespace, name, ok := a.options.Allocations.Holder(d.ID)
	if !ok {
		return podName{}
	}
	return podName{namespace, name}
}

// tenant returns the pod in whose network namespace a device is; nil for none.
func (o *owners) tenant(d *inventory.Device) *Pod {
	id, ok := namespaceOf(d)
	if !ok || o.places[id] == nil {
		return nil
	}
	return o.places[id].pod
}
