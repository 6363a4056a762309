package exporter

import "railhead/internal/attribution"

// holder is a pod that has or uses a device.
type holder struct {
	pod         *attribution.Pod
	attribution string // a method, or shared
}

// holders are the pods that have or use a device, of which there are few. They
// are replaced, never changed.
type holders []holder

// find returns a pod as it is known now; nil where it is not there.
func (list holders) find(p *attribution.Pod) *attribution.Pod {
	key := keyOf(p)
	for _, h := range list {
		if keyOf(h.pod) == key {
			return h.pod
		}
	}
	return nil
}

// shared is what is told of a pod that uses a device beside others.
const shared = "shared"

// attributions are the ways in which a pod can have devices, most exact first.
func attributions() []string {
	return []string{string(attribution.Exclusive), string(attribution.QPCounter), string(attribution.SoleUser), shared}
}

// holders returns the pods that have or use the device.
func (s *shares) holders(of subject) holders {
	if of.pod != nil {
		return holders{{of.pod, string(attribution.Exclusive)}}
	}
	sole, apart := attribution.Sole(s.users), s.countedApart()
	var all holders
	for i := range s.users {
		switch pod := s.users[i].Pod; {
		case pod == nil:
		case pod == sole:
			all = append(all, holder{pod, string(attribution.SoleUser)})
		case apart[keyOf(pod)]:
			all = append(all, holder{pod, string(attribution.QPCounter)})
		default:
			all = append(all, holder{pod, shared})
		}
	}
	return all
}

// countedApart are the pods whose queue pairs were counted apart.
func (s *shares) countedApart() map[podKey]bool {
	apart := map[podKey]bool{}
	for l := range s.account.Lines() {
		if l.Method == attribution.QPCounter {
			apart[keyOf(l.Pod)] = true
		}
	}
	return apart
}

// setHolders replaces the pods that have or use the device.
func (d *device) setHolders(list holders) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.health.holders = list
}

func (d *device) holders() holders {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.health.holders
}

// isSameHolder tells whether the same is told of two.
func isSameHolder(a, b holder) bool { return a.attribution == b.attribution && *a.pod == *b.pod }

// known is a pod as it is known best: it may be deleted, and forgotten by the
// source of pods, before it ends and leaves the device. Its series would begin
// anew then, under fewer labels.
func (d *device) known(p *attribution.Pod) *attribution.Pod {
	if p == nil {
		return nil
	}
	for _, h := range d.holders() {
		if isSame(h.pod, p) && knowledge(h.pod) > knowledge(p) {
			return h.pod
		}
	}
	return p
}

// isSame tells whether two may be the same pod: by UID, else by name.
func isSame(a, b *attribution.Pod) bool {
	if a.UID != "" && b.UID != "" {
		return a.UID == b.UID
	}
	return a.Namespace == b.Namespace && a.Name == b.Name
}

// knowledge is how much is known of a pod: its UID, its name, or both.
func knowledge(p *attribution.Pod) (n int) {
	for _, part := range []string{p.UID, p.Namespace} {
		if part != "" {
			n++
		}
	}
	return n
}
