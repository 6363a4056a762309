package cniserver

import "sync"

// works counts what goes on, and may be waited for while more begins.
type works struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when there is nothing; nil while nobody waits
}

// begin notes that something goes on until end is called.
func (w *works) begin() (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	return w.end
}

func (w *works) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n--; w.n == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// run does something in the background.
func (w *works) run(fn func()) {
	end := w.begin()
	go func() {
		defer end()
		fn()
	}()
}

// wait returns at a moment when nothing goes on.
func (w *works) wait() {
	w.mu.Lock()
	if w.n == 0 {
		w.mu.Unlock()
		return
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.mu.Unlock()
	<-idle
}
