package box

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// supervisor is what the first process of a machine does all its life: it
// carries out orders.
type supervisor struct {
	env      []string
	children *children
	driver   *wire

	mu       sync.Mutex
	services map[string]*supervised
	running  map[uint64]*child // programs, by the order to run them
}

func newSupervisor(env []string, children *children, driver *wire) *supervisor {
	return &supervisor{
		env: environment(defaultEnv(), env), children: children, driver: driver,
		services: map[string]*supervised{}, running: map[uint64]*child{},
	}
}

// serve says that the machine is there and carries out orders until the driver
// is gone.
func (s *supervisor) serve() error {
	// Its name in ps is that of a link otherwise.
	if err := os.WriteFile("/proc/self/comm", []byte(programName), 0); err != nil {
		return report(err)
	}
	if err := s.driver.send(reply{}); err != nil {
		return err
	}
	for {
		var o order
		files, err := s.driver.receive(&o)
		if err != nil {
			return err
		}
		s.carryOut(o, files)
	}
}

// carryOut sees that an order is replied to, now or once it has been done. The
// files are its own.
func (s *supervisor) carryOut(o order, files []*os.File) {
	answer := reply{ID: o.ID}
	var err error
	switch o.Verb {
	case verbRun:
		err = s.run(o, files)
		closeFiles(files)
		if err == nil {
			return // replied to when the program ends
		}
	case verbStart:
		err = s.startService(o, files)
	case verbStop, verbKill, verbPause, verbResume:
		go func() { s.reply(answer, s.change(o)) }()
		return
	case verbInterrupt:
		err = s.interrupt(o.Running)
	case verbServices:
		answer.Services = s.status()
	default:
		err = fmt.Errorf("order %q is unknown", o.Verb)
	}
	s.reply(answer, err)
}

// reply answers an order. If it cannot, the driver is gone, and so will be
// this process.
func (s *supervisor) reply(r reply, err error) {
	r.Error = newRemoteError(err)
	_ = s.driver.send(r)
}

// run starts a program; its end is the reply.
func (s *supervisor) run(o order, files []*os.File) error {
	what := *o.Run
	what.Env = environment(s.env, what.Env)
	child, err := s.children.start(what, files)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.running[o.ID] = child
	s.mu.Unlock()
	go func() {
		status := uint32(<-child.status)
		s.mu.Lock()
		delete(s.running, o.ID)
		s.mu.Unlock()
		s.reply(reply{ID: o.ID, Status: &status}, nil)
	}()
	return nil
}

// interrupt kills a program that was run, with its process group.
func (s *supervisor) interrupt(id uint64) error {
	s.mu.Lock()
	child, ok := s.running[id]
	s.mu.Unlock()
	if !ok {
		return unix.ESRCH
	}
	return s.children.signal(child, unix.SIGKILL, true)
}

// service finds a service.
func (s *supervisor) service(name string) (*supervised, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	service, ok := s.services[name]
	if !ok {
		return nil, fmt.Errorf("service %q: %w; there are %q", name, unix.ENOENT, slices.Sorted(maps.Keys(s.services)))
	}
	return service, nil
}

// startService starts a service anew, or one of a name that is not running.
func (s *supervisor) startService(o order, files []*os.File) error {
	if len(files) != 1 {
		closeFiles(files)
		return fmt.Errorf("service %q came with %d files: want its log", o.Service.Name, len(files))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.services[o.Service.Name]; ok && !old.ended() {
		closeFiles(files)
		return fmt.Errorf("service %q is running: %w", o.Service.Name, unix.EEXIST)
	}
	what := invocation{Args: o.Service.Args, Env: environment(s.env, o.Service.Env), Dir: o.Service.Dir}
	service, err := supervise(s.children, *o.Service, what, files[0])
	if err != nil {
		return err
	}
	s.services[o.Service.Name] = service
	return nil
}

// change does to a service what an order says, and takes the time it takes.
func (s *supervisor) change(o order) error {
	service, err := s.service(o.Name)
	if err != nil {
		return err
	}
	switch o.Verb {
	case verbStop:
		service.stop()
		return nil
	case verbPause:
		return service.pause()
	case verbResume:
		return service.resume()
	}
	return service.kill()
}

// status is that of all services, by name.
func (s *supervisor) status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Status
	for _, name := range slices.Sorted(maps.Keys(s.services)) {
		list = append(list, s.services[name].snapshot())
	}
	return list
}
