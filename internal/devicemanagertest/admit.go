package devicemanagertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Admit gives a pod all devices that its containers want, or none and an error. What init containers had goes
// to those after them before anything else is taken. Resources that no plugin ever registered are somebody else's, and
// passed over.
func (h *Host) Admit(ctx context.Context, pod Pod) error {
	h.admitting.Lock()
	defer h.admitting.Unlock()
	spare := map[string][]string{} // by resource: the pod's own, and no longer used by the container that had them
	for _, c := range pod.Containers {
		for _, resource := range slices.Sorted(maps.Keys(c.Devices)) {
			if !h.devices.known(resource) || c.Devices[resource] == 0 {
				continue
			}
			given, err := h.give(ctx, pod, c, resource, spare[resource])
			if err != nil {
				h.devices.release(pod.UID)
				return fmt.Errorf("container %s: %s: %w", c.Name, resource, err)
			}
			spare[resource] = slices.DeleteFunc(spare[resource], func(id string) bool { return slices.Contains(given, id) })
			if c.Init {
				spare[resource] = append(spare[resource], given...)
			}
		}
	}
	return nil
}

// give gives a container its devices of one resource and returns them.
func (h *Host) give(ctx context.Context, pod Pod, c Container, resource string, spare []string) ([]string, error) {
	count, free := c.Devices[resource], h.devices.free(resource)
	must := slices.Clone(spare[:min(count, len(spare))]) // DeleteFunc clears what it cuts off
	if have := len(spare) + len(free); have < count {
		return nil, fmt.Errorf("%d requested, %d available", count, have)
	}
	p, err := h.plugin(resource)
	if err != nil {
		return nil, err
	}
	liked, err := p.preferred(ctx, count, must, free)
	if err != nil {
		return nil, err
	}
	chosen := choose(count, must, liked, free)
	if err := h.devices.take(pod, Use{Container: c.Name, Resource: resource, Devices: chosen}); err != nil {
		return nil, err
	}
	return chosen, p.allocate(ctx, chosen)
}

// Prepare tells plugins that want to know that a pod's containers are about to start.
func (h *Host) Prepare(ctx context.Context, uid string) error {
	for _, use := range h.devices.uses(uid) {
		p, err := h.plugin(use.Resource)
		if err == nil {
			err = p.prepare(ctx, use.Devices)
		}
		if err != nil {
			return fmt.Errorf("container %s: %s: %w", use.Container, use.Resource, err)
		}
	}
	return nil
}

// Release takes all devices of a pod back. The API has no call that tells plugins.
func (h *Host) Release(uid string) { h.devices.release(uid) }
