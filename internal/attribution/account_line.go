package attribution

// Line is what a pod's share of a port has come to since the pod has the
// device.
type Line[F comparable] struct {
	Pod    *Pod // the newest
	Device string
	Port   int // 0 for the whole device
	Method Method

	totals []Value[F]
	index  map[F]int
	seen   uint64
}

// lineKey is what tells lines apart.
type lineKey struct {
	pod    podKey
	device string
	port   int
	method Method
}

// podKey is what tells pods apart: their UID, or namespace and name where that
// is not known.
type podKey struct{ uid, namespace, name string }

func keyOf(p *Pod) podKey {
	switch {
	case p == nil:
		return podKey{}
	case p.UID != "":
		return podKey{uid: p.UID}
	}
	return podKey{namespace: p.Namespace, name: p.Name}
}

// Values returns the totals, each counter at the same place each time. They are
// not to be changed, and change with the next observation.
func (l *Line[F]) Values() []Value[F] { return l.totals }

// line returns the totals of a pod, which begin here where there are none.
func (a *Account[F]) line(device string, port int, pod *Pod, method Method) *Line[F] {
	l, isNew := entry(a.lines, lineKey{keyOf(pod), device, port, method})
	if isNew {
		l.Device, l.Port, l.Method = device, port, method
	}
	l.see(pod, a.pass)
	return l
}

// see notes that the pod is there. One of which less is known than before, as
// when the API server has forgotten it first, does not replace what is known.
func (l *Line[F]) see(pod *Pod, pass uint64) {
	if l.Pod == nil || pod.Namespace != "" || l.Pod.Namespace == "" {
		l.Pod = pod
	}
	l.seen = pass
}

// add adds to the total of a counter, also zero, so that the line has it. A nil
// Line takes nothing.
func (l *Line[F]) add(family F, gained uint64) {
	if l == nil {
		return
	}
	i, ok := l.index[family]
	if !ok {
		if l.index == nil {
			l.index = map[F]int{}
		}
		i = len(l.totals)
		l.index[family] = i
		l.totals = append(l.totals, Value[F]{Family: family})
	}
	l.totals[i].Value += gained
}
