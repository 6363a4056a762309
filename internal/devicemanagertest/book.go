package devicemanagertest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Pod is what of a pod matters to devices.
type Pod struct {
	UID, Namespace, Name string
	Containers           []Container // init containers first, in the order in which they run
}

// Container is what of a container matters to devices.
type Container struct {
	Name string
	// Init is set where it ends before the next one starts, so that its devices go on to that.
	Init    bool
	Devices map[string]int // how many of each resource
}

// Use is what a container has been given of one resource.
type Use struct {
	Container string
	Resource  string
	Devices   []string // sorted
}

// Count is how many devices of a resource a node has.
type Count struct {
	Capacity    int // all
	Allocatable int // those that are healthy, taken or not
}

// book says which devices a node has and whose they are. The zero value is ready.
type book struct {
	mu        sync.Mutex
	resources map[string]*resource
	pods      map[string]record // by UID
}

// resource is one kind of device: those the plugin lists, and who has them. A device stays taken when the plugin no
// longer lists it, until its pod ends.
type resource struct {
	devices map[string]*pluginapi.Device
	owners  map[string]string // UID of the pod
}

// record is what a pod has, in the order in which it was given.
type record struct {
	pod  Pod
	uses []Use
}

// list replaces what a plugin said before of its devices.
func (b *book) list(name string, devices []*pluginapi.Device) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.resource(name)
	clear(r.devices)
	for _, d := range devices {
		r.devices[d.GetID()] = d
	}
}

// lose takes all devices of a resource for unhealthy: nobody can speak for them.
func (b *book) lose(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.resource(name)
	for id, d := range r.devices {
		r.devices[id] = &pluginapi.Device{ID: id, Health: pluginapi.Unhealthy, Topology: d.GetTopology()}
	}
}

func (b *book) resource(name string) *resource {
	if b.resources == nil {
		b.resources = map[string]*resource{}
	}
	if b.resources[name] == nil {
		b.resources[name] = &resource{devices: map[string]*pluginapi.Device{}, owners: map[string]string{}}
	}
	return b.resources[name]
}

// counts are those of every resource that a plugin ever listed.
func (b *book) counts() map[string]Count {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := map[string]Count{}
	for name, r := range b.resources {
		c := Count{Capacity: len(r.devices)}
		for _, d := range r.devices {
			if d.GetHealth() == pluginapi.Healthy {
				c.Allocatable++
			}
		}
		counts[name] = c
	}
	return counts
}

// known tells whether a plugin ever listed devices of a resource.
func (b *book) known(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.resources[name] != nil
}

// free are the healthy devices of a resource that no pod has, sorted.
func (b *book) free(name string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.resources[name].free()
}

func (r *resource) free() []string {
	if r == nil {
		return nil
	}
	var free []string
	for id, d := range r.devices {
		if _, taken := r.owners[id]; !taken && d.GetHealth() == pluginapi.Healthy {
			free = append(free, id)
		}
	}
	slices.Sort(free)
	return free
}

// take gives devices to a container of a pod. They must be free or the pod's own already; if one is not, none is given.
func (b *book) take(pod Pod, use Use) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.resource(use.Resource)
	for _, id := range use.Devices {
		owner, taken := r.owners[id]
		if taken && owner != pod.UID {
			return fmt.Errorf("%s %s: pod %s has it", use.Resource, id, owner)
		}
		if !taken && r.devices[id].GetHealth() != pluginapi.Healthy {
			return fmt.Errorf("%s %s: not a healthy device", use.Resource, id)
		}
	}
	for _, id := range use.Devices {
		r.owners[id] = pod.UID
	}
	if b.pods == nil {
		b.pods = map[string]record{}
	}
	b.pods[pod.UID] = record{pod, append(b.pods[pod.UID].uses, use)}
	return nil
}

// release takes all devices of a pod back.
func (b *book) release(uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, use := range b.pods[uid].uses {
		for _, id := range use.Devices {
			delete(b.resources[use.Resource].owners, id)
		}
	}
	delete(b.pods, uid)
}

// uses is what a pod has.
func (b *book) uses(uid string) []Use {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.pods[uid].uses)
}

// records is what each pod has, by namespace and name.
func (b *book) records() []record {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Collect(maps.Values(b.pods))
	slices.SortFunc(all, func(x, y record) int {
		return cmp.Or(cmp.Compare(x.pod.Namespace, y.pod.Namespace), cmp.Compare(x.pod.Name, y.pod.Name))
	})
	return all
}

// healthy are the names of all healthy devices by resource, sorted.
func (b *book) healthy() []Use {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Use
	for _, name := range slices.Sorted(maps.Keys(b.resources)) {
		use := Use{Resource: name}
		for id, d := range b.resources[name].devices {
			if d.GetHealth() == pluginapi.Healthy {
				use.Devices = append(use.Devices, id)
			}
		}
		slices.Sort(use.Devices)
		all = append(all, use)
	}
	return all
}

// described are the devices with these names, as their plugin describes them.
func (b *book) described(name string, ids []string) []*pluginapi.Device {
	b.mu.Lock()
	defer b.mu.Unlock()
	var devices []*pluginapi.Device
	for _, id := range ids {
		if d, ok := b.resource(name).devices[id]; ok {
			devices = append(devices, d)
		}
	}
	return devices
}

// choose makes count devices of those that must be among them, those that the plugin would like, and the others that
// are free, in this order.
func choose(count int, must, liked, free []string) []string {
	chosen := slices.Clone(must[:min(count, len(must))])
	for _, id := range slices.Concat(liked, free) {
		if len(chosen) == count {
			break
		}
		if slices.Contains(free, id) && !slices.Contains(chosen, id) {
			chosen = append(chosen, id)
		}
	}
	slices.Sort(chosen)
	return chosen
}
