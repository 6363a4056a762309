package cniinstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// fighting is how many passes may mend something, of those that Installer.quiet
// reaches back to, before somebody is told.
const fighting = 5

// Run keeps the installation right until the context ends, and leaves it as it
// is: an agent that restarts is not uninstalled. It reports each pass that
// changed something or found something new.
//
// It looks again when one of the directories changes, and now and then on its
// own. While others keep undoing what it does, it waits ever longer before it
// does so again. On a node only that agent may call Run that has the socket
// (cnicall.Listen), or two releases would take turns.
func (i *Installer) Run(ctx context.Context, report func(State, error)) {
	watcher, watching := fsnotify.NewWatcher()
	if watching == nil {
		defer watcher.Close()
	}
	r := rounds{installer: i}
	for {
		err := watching
		if err == nil {
			err = i.watch(watcher)
		}
		s, failed := i.Ensure(ctx)
		if ctx.Err() != nil {
			return
		}
		r.tell(s, errors.Join(failed, err), report)
		if !i.idle(ctx, watcher, r.next(s, failed), r.pause()) {
			return
		}
	}
}

// watch watches both directories, and those anew that were made anew.
func (i *Installer) watch(w *fsnotify.Watcher) error {
	var errs []error
	for _, dir := range []string{i.config.BinDir, i.config.ConfDir} {
		if !i.disk.exists(dir) {
			continue // Ensure says so, or waits for it
		}
		if err := w.Add(dir); err != nil {
			errs = append(errs, fmt.Errorf("watch %s: %w; it is looked at now and then", dir, err))
		}
	}
	return errors.Join(errs...)
}

// idle waits until something changes or it is time, and then until changes pause.
// It returns false at the end of the context.
func (i *Installer) idle(ctx context.Context, w *fsnotify.Watcher, next, pause time.Duration) bool {
	var events chan fsnotify.Event
	var faults chan error
	if w != nil {
		events, faults = w.Events, w.Errors
	}
	timer := time.NewTimer(next)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-events:
	case <-faults: // some events were lost
	}
	settled := time.NewTimer(pause)
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-settled.C:
			return true
		case <-events: // the pass that follows sees them all
		case <-faults:
		}
	}
}

// rounds is what Run remembers from pass to pass.
type rounds struct {
	installer *Installer
	told      bool
	last      State
	lastError string
	mended    []time.Time // of late
}

// tell reports what is new.
func (r *rounds) tell(s State, err error, report func(State, error)) {
	now := r.installer.now()
	r.mended = slices.DeleteFunc(r.mended, func(t time.Time) bool { return now.Sub(t) > r.installer.quiet })
	if len(s.Changed) > 0 {
		r.mended = append(r.mended, now)
	}
	if len(s.Changed) > 0 && len(r.mended) >= fighting {
		s.Problems = append(s.Problems, fmt.Sprintf("%q: somebody changes them again and again; see that no other project or release of Railhead installs them", s.Changed))
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	same := r.told && r.lastError == text && r.last.Phase == s.Phase && r.last.Cluster == s.Cluster &&
		slices.Equal(r.last.Foreign, s.Foreign) && slices.Equal(r.last.Problems, s.Problems)
	if !same || len(s.Changed) > 0 {
		report(s, err)
	}
	r.told, r.last, r.lastError = true, s, text
}

// next is when to look again without an event.
func (r *rounds) next(s State, err error) time.Duration {
	i := r.installer
	switch {
	case !i.missingSince.IsZero() && i.now().Sub(i.missingSince) < i.grace:
		return i.grace - i.now().Sub(i.missingSince)
	case err != nil || s.Phase == Waiting:
		return min(i.pause, i.quiet)
	}
	return i.quiet
}

// pause is how long to wait after an event: twice as long for each time that
// something had to be mended of late.
func (r *rounds) pause() time.Duration {
	return min(r.installer.settle<<min(max(len(r.mended)-1, 0), 16), r.installer.pause)
}
