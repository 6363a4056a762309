package holder

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
)

// life is a pod of an identity, which may have an old and a new one here.
type life struct {
	identity string
	pod      types.UID
}

// lives is how many addresses of each pool such pods have or wait for.
type lives map[life]map[string]int64

func (l lives) add(of life, pool string) {
	if l[of] == nil {
		l[of] = map[string]int64{}
	}
	l[of][pool]++
}

// most is by identity what the neediest of its pods needs of each pool.
func (l lives) most() map[string]map[string]int64 {
	most := map[string]map[string]int64{}
	for of, pools := range l {
		if most[of.identity] == nil {
			most[of.identity] = map[string]int64{}
		}
		for pool, n := range pools {
			most[of.identity][pool] = max(most[of.identity][pool], n)
		}
	}
	return most
}

// pins is the identities that are here or on their way, and what they need.
func (h *Holder) pins(waiting []waited) []v1alpha1.Pin {
	here := lives{}
	migrate := map[string]bool{}
	for _, e := range h.pods {
		h.pinsOf(e, here)
	}
	for _, w := range waiting {
		if w.Identity != "" && h.pods[w.PodUID] == nil {
			here.add(life{w.Identity, w.PodUID}, w.pool)
			migrate[w.Identity] = migrate[w.Identity] || w.Migration
		}
	}
	wants := here.most()
	var all []v1alpha1.Pin
	for _, identity := range slices.Sorted(maps.Keys(wants)) {
		all = append(all, v1alpha1.Pin{Identity: identity, Wants: wantList(wants[identity]), Migration: migrate[identity]})
	}
	return all
}

// pinsOf adds what a pod has that is its identity's.
func (h *Holder) pinsOf(e *entry, here lives) {
	if e.Identity == "" {
		return
	}
	for i := range e.Addresses {
		given := &e.Addresses[i]
		if s := h.at(given.Pool, given.Prefix.Addr()); s != nil && s.shown && s.identity == "" {
			continue // it was lost, and came back by exact: it is no identity's any more
		}
		here.add(life{e.Identity, e.PodUID}, given.Pool)
	}
}
