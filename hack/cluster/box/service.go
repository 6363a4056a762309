package box

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// probePause is the time between two probes of whether a service is ready.
const probePause = 50 * time.Millisecond

// StartService starts a service and waits until its probe says that it is
// ready. What it writes is appended to Dir/log/<name>.log; the error has the
// end of that if the service fails, or is not ready when ctx ends. It goes on
// running in the latter case. A name may be used again after its service ended.
func (b *Box) StartService(ctx context.Context, service Service) error {
	if service.Name == "" || strings.ContainsAny(service.Name, "/\x00") {
		return b.failed("start", service.Name, errors.New("want a name that can be a file's"))
	}
	log, err := openLog(b.spec.log(service.Name))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	// Whether it started is known at once, and must be.
	started := context.WithoutCancel(ctx)
	if _, err := b.orders.call(started, order{Verb: verbStart, Service: &service}, log.File); err != nil {
		return b.failed("start", service.Name, err)
	}
	b.mu.Lock()
	b.services[service.Name] = service
	b.mu.Unlock()
	if err := b.awaitReady(ctx, service); err != nil {
		if text := log.tail(); text != "" {
			err = fmt.Errorf("%w; its log ends with:\n%s", err, text)
		}
		return b.failed("start", service.Name, err)
	}
	return nil
}

// awaitReady runs the service's probe until it ends well.
func (b *Box) awaitReady(ctx context.Context, service Service) error {
	if len(service.Ready) == 0 {
		return nil
	}
	for {
		failure, err := b.probe(ctx, service)
		switch {
		case err != nil:
			return err
		case failure == nil:
			return nil
		}
		select {
		case <-time.After(probePause):
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w; last probe: %w", ctx.Err(), failure)
		}
	}
}

// probe runs a service's probe once. It returns how the probe failed, if it
// did, and an error if it need not be tried again.
func (b *Box) probe(ctx context.Context, service Service) (failure, err error) {
	var said strings.Builder
	failure = b.Run(ctx, Command{Args: service.Ready, Env: service.Env, Stdout: &said, Stderr: &said})
	switch {
	case failure == nil:
		return nil, nil
	case ctx.Err() != nil:
		return failure, nil
	case !isExit(failure):
		return nil, failure
	}
	if err := b.alive(ctx, service.Name); err != nil && ctx.Err() == nil {
		return nil, err
	}
	return fmt.Errorf("%w: %s", failure, strings.TrimSpace(said.String())), nil
}

// isExit reports whether a program ran, though not well.
func isExit(err error) bool {
	var exit *ExitError
	return errors.As(err, &exit)
}

// alive returns an error if a service has ended for good.
func (b *Box) alive(ctx context.Context, name string) error {
	status, err := b.service(ctx, name)
	if err != nil {
		return err
	}
	if status.State == Ended || status.State == Stopped {
		return fmt.Errorf("%s before it was ready: %s", status.State, status.Exit)
	}
	return nil
}

// Stop ends a service: by SIGTERM, by SIGKILL if it has not ended 10 seconds
// later. It is not started again.
func (b *Box) Stop(name string) error { return b.tell(context.Background(), verbStop, name) }

// Kill kills a service's process. It is started again if it is a service to be
// restarted. What it had started itself goes on.
func (b *Box) Kill(name string) error { return b.tell(context.Background(), verbKill, name) }

// Pause stops a service's process where it is (SIGSTOP).
func (b *Box) Pause(name string) error { return b.tell(context.Background(), verbPause, name) }

// Resume lets a paused service go on.
func (b *Box) Resume(name string) error { return b.tell(context.Background(), verbResume, name) }

func (b *Box) tell(ctx context.Context, v verb, name string) error {
	_, err := b.orders.call(ctx, order{Verb: v, Name: name})
	return b.failed(string(v), name, err)
}

func (b *Box) failed(what, service string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s in machine %s: %w", what, service, b.spec.Name, err)
}

// Restart stops a service if it is running, starts it as it was started, and
// waits until it is ready.
func (b *Box) Restart(ctx context.Context, name string) error {
	b.mu.Lock()
	service, ok := b.services[name]
	b.mu.Unlock()
	if !ok {
		return b.failed("restart", name, fs.ErrNotExist)
	}
	if err := b.tell(ctx, verbStop, name); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return b.StartService(ctx, service)
}

// Services returns how all services are, by name.
func (b *Box) Services() ([]Status, error) { return b.list(context.Background()) }

func (b *Box) list(ctx context.Context) ([]Status, error) {
	r, err := b.orders.call(ctx, order{Verb: verbServices})
	if err != nil {
		return nil, fmt.Errorf("services of machine %s: %w", b.spec.Name, err)
	}
	return r.Services, nil
}

func (b *Box) service(ctx context.Context, name string) (Status, error) {
	list, err := b.list(ctx)
	if err != nil {
		return Status{}, err
	}
	i := slices.IndexFunc(list, func(s Status) bool { return s.Name == name })
	if i < 0 {
		return Status{}, b.failed("status of", name, fs.ErrNotExist)
	}
	return list[i], nil
}
