package attribution

import (
	"maps"
	"sync"
	"sync/atomic"

	"railhead/internal/inventory"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/sysfs"
)

// PodSource knows the pods of this node. It answers at once with what it knows,
// from any goroutine, and allocates nothing.
type PodSource interface {
	Pod(uid string) *Pod                   // nil where it is not known
	PodByName(namespace, name string) *Pod // likewise
	Synced() bool                          // false until it knows all pods that there were at its start, and what it can of their workloads
}

// Allocations knows to which pods the kubelet gave devices. It answers at once,
// from any goroutine.
type Allocations interface {
	// Holder returns the pod that alone was given the function with a PCI
	// address.
	Holder(address string) (namespace, name string, ok bool)
}

// Options are where an Attributor looks beside the kernel. All may be zero.
type Options struct {
	Pods        PodSource   // nil where there is no Kubernetes: pods show by their UID
	Allocations Allocations // nil where there is no kubelet

	// QPSAtMost is up to how many queue pairs of a device Users counts by user;
	// 0 for never. The kernel asks the driver for each, which on mlx5 is a
	// firmware command a queue pair.
	QPSAtMost int
}

// DefaultQPSAtMost is how many queue pairs of a device are asked for one by one
// unless an administrator wants it otherwise.
const DefaultQPSAtMost = 1000

// Attributor knows whose devices are. It opens no network namespace and keeps
// none alive. It is safe for concurrent use.
//
// Its facts are /proc/PID/ns/net, stat, status and cgroup of processes in the
// PID namespace of proc's mount, which must be the host's; reading the first of
// other users takes CAP_SYS_PTRACE.
type Attributor struct {
	options   Options
	processes processes

	refresh sync.Mutex // held by Refresh
	now     atomic.Pointer[owners]
}

// owners is what Refresh found.
type owners struct {
	places    map[netns.ID]*place    // of the namespaces of devices
	allocated map[string]*allocation // by device ID
	tenancies map[string]tenancy     // likewise
}

// New returns an Attributor that reads the processes of fs.
func New(fs sysfs.FS, options Options) *Attributor {
	a := &Attributor{options: options, processes: processes{fs: fs}}
	a.now.Store(&owners{})
	return a
}

// Refresh finds out whose the devices of a snapshot are. It is called once a
// pass, before Owner. It holds what it knew against the kernel, which is two
// small files a namespace, and looks through all processes only where it does
// not know the pod of a namespace: once, and again after ever longer pauses
// while that has none.
//
// The error, fs.ErrPermission where processes may not be looked into, is about
// namespaces whose pod was not found; all others are right.
func (a *Attributor) Refresh(devices []inventory.Device) error {
	a.refresh.Lock()
	defer a.refresh.Unlock()
	before := a.now.Load()
	places, err := a.locate(before.places, devices)
	now := &owners{places: places, allocated: map[string]*allocation{}, tenancies: map[string]tenancy{}}
	for i := range devices {
		now.allocate(a, before, &devices[i])
	}
	a.now.Store(now)
	return err
}

// locate finds the pods in the namespaces of devices. Namespaces that hold no
// device any more are forgotten.
func (a *Attributor) locate(before map[netns.ID]*place, devices []inventory.Device) (map[netns.ID]*place, error) {
	places := map[netns.ID]*place{}
	wanted := map[netns.ID]bool{}
	for i := range devices {
		id, ok := namespaceOf(&devices[i])
		if !ok || places[id] != nil || wanted[id] {
			continue
		}
		was := before[id]
		switch {
		case was == nil || was.pod != nil && !was.stands(id, &a.processes) || was.pod == nil && was.left <= 1:
			wanted[id] = true
		case was.pod != nil:
			places[id] = was
		default:
			places[id] = &place{pause: was.pause, left: was.left - 1}
		}
	}
	if len(wanted) == 0 {
		return places, nil
	}
	found, err := search(&a.processes, wanted)
	maps.Copy(places, found)
	for id := range wanted {
		if places[id] == nil {
			places[id] = before[id].rest()
		}
	}
	return places, err
}

// Synced tells whether all pods that there were at the start are known; so it
// is where there is no Kubernetes.
func (a *Attributor) Synced() bool { return a.options.Pods == nil || a.options.Pods.Synced() }

// Owner returns the pod that has a device for itself, as of the last Refresh:
// the pod in whose network namespace its RDMA device is, else its netdev, else
// the pod that the kubelet gave it to, which finds what pods with the host's
// network have. It is nil, with an empty method, where a device is nobody's or
// everybody's. It allocates nothing.
//
// What the kubelet gave to a pod that has left the device, or that has been
// deleted, is nobody's.
func (a *Attributor) Owner(d *inventory.Device) (*Pod, Method) {
	now := a.now.Load()
	if pod := now.tenant(d); pod != nil {
		return a.newest(pod), Exclusive
	}
	given := now.allocated[d.ID]
	if given == nil {
		return nil, ""
	}
	pod := a.newest(given.pod)
	if _, isAway := namespaceOf(d); !isAway && given.wasKnown && pod == given.pod {
		return nil, "" // it was forgotten, and no namespace keeps the device
	}
	return pod, Exclusive
}

// namespaceOf returns the other network namespace that a device is in: that of
// its RDMA device, else that of its own netdev.
func namespaceOf(d *inventory.Device) (netns.ID, bool) {
	if d.RDMA != nil && d.RDMA.NetNS != nil {
		return d.RDMA.NetNS.ID, true
	}
	if len(d.Netdevs) > 0 && d.Netdevs[0].NetNS != nil {
		return d.Netdevs[0].NetNS.ID, true
	}
	return netns.ID{}, false
}

// newest returns what is known of a pod now; pod has its UID alone, or its
// namespace and name.
func (a *Attributor) newest(pod *Pod) *Pod {
	if a.options.Pods == nil {
		return pod
	}
	var known *Pod
	if pod.UID != "" {
		known = a.options.Pods.Pod(pod.UID)
	} else {
		known = a.options.Pods.PodByName(pod.Namespace, pod.Name)
	}
	if known == nil {
		return pod
	}
	return known
}

// unknownPod is a pod of which only the UID is known.
func unknownPod(uid string) *Pod { return &Pod{UID: uid, Name: uid} }

// entry returns the entry of a map, which it makes where there is none.
func entry[K comparable, V any](m map[K]*V, key K) (v *V, isNew bool) {
	if v = m[key]; v != nil {
		return v, false
	}
	v = new(V)
	m[key] = v
	return v, true
}
