package modeltest

import (
	"fmt"
	"iter"
	"runtime/debug"
	"slices"

	"railhead/api/railhead/v1alpha1"
)

// A process is what dies as one: its threads and all they remember.
type process struct {
	name    string
	alive   bool
	cut     bool // it reaches no API server
	skew    int64
	threads []*thread
	busy    *thread // stands where it may hold a lock of the process: no other of its threads goes on
}

// A thread is a coroutine: it runs until its next pause, and nothing else runs
// meanwhile.
type thread struct {
	name  string
	proc  *process
	next  func() (point, bool)
	stop  func()
	yield func(point) bool
	at    point
	dead  bool
}

// A point is where a thread pauses.
type point struct {
	what string
	// alone says that the thread may hold a lock: other threads of its process wait.
	alone bool
	// late is the request about to be sent: it may land after its sender died.
	late func()
	// gives is the returns that the request says and the stored lease does not.
	gives []v1alpha1.Return
	// idle says that there may be nothing to do.
	idle bool
}

// killed unwinds a thread whose process died.
type killed struct{}

// crash is a panic of the code under test.
type crash struct {
	thread string
	value  any
	stack  []byte
}

func (c crash) Error() string {
	return fmt.Sprintf("%s panicked: %v\n%s", c.thread, c.value, c.stack)
}

// spawn makes a thread, which begins when it is first chosen.
func (w *world) spawn(p *process, name string, body func()) {
	t := &thread{name: p.name + "/" + name, proc: p, at: point{what: "begins"}}
	t.next, t.stop = iter.Pull(func(yield func(point) bool) {
		t.yield = yield
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(killed); !ok {
					w.fail(crash{t.name, r, debug.Stack()})
				}
			}
		}()
		body()
	})
	p.threads = append(p.threads, t)
}

// pause gives the turn away; it does not return if the process is killed here.
func (w *world) pause(p point) {
	if !w.halt(p) {
		panic(killed{})
	}
}

// halt gives the turn away, and says whether the process is still alive. It is
// for where the code under test may hold a lock, which a panic would not give
// back: what is dead runs on there, and changes nothing any more.
func (w *world) halt(p point) bool {
	t := w.current
	if t == nil {
		return true // the world itself asks
	}
	t.dead = t.dead || !t.yield(p)
	return !t.dead
}

// alive ends a thread that comes out of the code under test and is dead.
func (w *world) alive() {
	if w.current != nil && w.current.dead {
		panic(killed{})
	}
}

// resume lets a thread go on to its next pause.
func (w *world) resume(t *thread) {
	w.current = t
	at, more := t.next()
	w.current = nil
	if !more {
		t.proc.busy = nil
		t.proc.threads = slices.DeleteFunc(t.proc.threads, func(o *thread) bool { return o == t })
		return
	}
	t.at = at
	t.proc.busy = nil
	if at.alone {
		t.proc.busy = t
	}
}

// kill ends a process where its threads stand. Requests that were about to be
// sent may land later.
func (w *world) kill(p *process) {
	if !p.alive {
		return
	}
	p.alive = false
	for _, t := range p.threads {
		if t.at.late != nil && w.chance(50) {
			w.seen("request lands after its sender died")
			w.later(t.at.late)
		}
		w.current = t
		t.stop()
		w.current = nil
	}
	p.threads, p.busy = nil, nil
}

// runnable are threads that may be chosen.
func (w *world) runnable() []*thread {
	w.ready = w.ready[:0]
	for _, p := range w.processes {
		switch {
		case !p.alive:
		case p.busy != nil:
			w.ready = append(w.ready, p.busy)
		default:
			w.ready = append(w.ready, p.threads...)
		}
	}
	return w.ready
}
