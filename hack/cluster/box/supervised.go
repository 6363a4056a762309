package box

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// stopLimit is how long a service may take to end after SIGTERM.
const stopLimit = 10 * time.Second

// errStopping says that a service is not started because it was told to stop.
var errStopping = errors.New("the service was told to stop")

// supervised is a service in its machine, with a goroutine that waits for it.
type supervised struct {
	Service
	children *children
	what     invocation
	files    []*os.File
	stopping chan struct{} // closed when it was told to stop
	over     chan struct{} // closed when it will not be started again

	mu     sync.Mutex
	child  *child
	status Status
}

// supervise starts a service. It owns the log from then on.
func supervise(children *children, service Service, what invocation, log *os.File) (*supervised, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	s := &supervised{
		Service: service, children: children, what: what, files: []*os.File{null, log, log},
		stopping: make(chan struct{}), over: make(chan struct{}), status: Status{Name: service.Name},
	}
	child, err := s.start()
	if err != nil {
		closeFiles(s.files[:2])
		return nil, err
	}
	go s.follow(child)
	return s, nil
}

// start starts the program once, unless the service was told to stop.
func (s *supervised) start() (*child, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told() {
		return nil, errStopping
	}
	child, err := s.children.start(s.what, s.files)
	if err != nil {
		return nil, err
	}
	s.child = child
	s.enter(Running)
	return child, nil
}

// enter changes the state. The caller holds the lock.
func (s *supervised) enter(state State) {
	s.status.State, s.status.Since, s.status.PID = state, time.Now(), 0
	if s.child != nil {
		s.status.PID = s.child.pid
	}
}

// follow waits for the program, and starts it again, until it is over.
func (s *supervised) follow(child *child) {
	defer close(s.over)
	defer closeFiles(s.files[:2])
	var pause time.Duration
	var err error
	for {
		started := time.Now()
		var exit string
		switch {
		case err == nil:
			exit = describe(<-child.status)
		case !errors.Is(err, errStopping):
			exit = err.Error() // the program is gone, or there is no memory
		}
		pause = nextPause(pause, time.Since(started))
		if !s.awaitRestart(exit, pause) {
			return
		}
		child, err = s.start()
	}
}

// awaitRestart notes how the program ended and waits until it is time to start
// it again. It reports whether it is to be.
func (s *supervised) awaitRestart(exit string, pause time.Duration) bool {
	s.mu.Lock()
	s.child, s.status.Exit = nil, cmp.Or(exit, s.status.Exit)
	again := s.Restart && !s.told()
	switch {
	case again:
		s.enter(Waiting)
	case s.told():
		s.enter(Stopped)
	default:
		s.enter(Ended)
	}
	s.mu.Unlock()
	if !again {
		return false
	}
	select {
	case <-time.After(pause):
	case <-s.stopping:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.enter(Stopped)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Restarts++
	return true
}

// told reports whether the service was told to stop.
func (s *supervised) told() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// ended reports whether the service will not run again by itself.
func (s *supervised) ended() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// stop ends the service for good: by SIGTERM, and if that takes too long by
// SIGKILL. It returns when it has ended.
func (s *supervised) stop() {
	s.mu.Lock()
	if !s.told() {
		close(s.stopping)
	}
	s.mu.Unlock()
	// One that has ended already, or is about to be started and sees that it
	// should not be, needs no signal.
	_ = s.signal(unix.SIGTERM)
	_ = s.signal(unix.SIGCONT)
	select {
	case <-s.over:
	case <-time.After(stopLimit):
		_ = s.signal(unix.SIGKILL)
		<-s.over
	}
}

func (s *supervised) kill() error { return s.signal(unix.SIGKILL) }

// pause stops the program, and returns when it stands still.
func (s *supervised) pause() error {
	child, err := s.running()
	if err != nil {
		return err
	}
	if err := s.children.suspend(child); err != nil {
		return err
	}
	s.note(child, Paused)
	return nil
}

func (s *supervised) resume() error {
	child, err := s.running()
	if err != nil {
		return err
	}
	if err := s.children.signal(child, unix.SIGCONT, false); err != nil {
		return err
	}
	s.note(child, Running)
	return nil
}

// note changes the state unless the program has ended meanwhile.
func (s *supervised) note(child *child, state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == child {
		s.enter(state)
	}
}

// signal signals the program, but not those that it started.
func (s *supervised) signal(sig unix.Signal) error {
	child, err := s.running()
	if err != nil {
		return err
	}
	return s.children.signal(child, sig, false)
}

// running is the program's process.
func (s *supervised) running() (*child, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == nil {
		return nil, fmt.Errorf("service %q is not running: %w", s.Name, unix.ESRCH)
	}
	return s.child, nil
}

func (s *supervised) snapshot() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}
