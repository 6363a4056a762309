package modeltest

import (
	"slices"

	"railhead/internal/ipam/holder"
)

func (r *podRun) del() {
	id := r.toDelete[0]
	r.toDelete = r.toDelete[1:]
	if !r.m.w.calm && r.m.w.rarely(20) && r.ending {
		r.m.w.seen("DEL never comes")
		r.m.tearDown(id)
		return
	}
	if !r.m.w.calm && r.m.w.rarely(10) {
		r.m.w.seen("doubled DEL")
		r.toDelete = append(r.toDelete, id)
	}
	r.busy = true
	h := r.m.holder
	r.m.w.spawn(r.m.agent, "del", func() { r.deleting(h, id) })
	r.toDelete = append(r.toDelete, id) // until it is done
}

func (r *podRun) deleting(h *holder.Holder, id string) {
	r.m.tearDown(id)
	r.m.w.pause(point{what: "releases"})
	_, freed, err := h.Release(holder.Key{PodUID: r.pod.uid, Sandbox: id}, 0, nil)
	r.m.w.alive()
	r.m.w.note("release %s %s: %t %v", r.pod.name, id, freed, err)
	r.busy = false
	if err == nil {
		if i := slices.Index(r.toDelete, id); i >= 0 {
			r.toDelete = slices.Delete(r.toDelete, i, i+1)
		}
	}
}
