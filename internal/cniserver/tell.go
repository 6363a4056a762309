package cniserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/agent/cluster"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/ipam/holder"
	"railhead/internal/npwg"
	"railhead/internal/policy"
	"railhead/internal/policy/annotation"
)

// Reasons of Events.
const (
	reasonFailed   = "RailheadAttachFailed"
	reasonWaiting  = "RailheadAttachWaiting"
	reasonWarning  = "RailheadAttachWarning"
	reasonConflict = "RailheadAddressConflict"
)

// waitingAfter is how long a pod waits before it is told what for: whoever looks
// at it sees "ContainerCreating" else.
const waitingAfter = 5 * time.Second

// eventMost is how long an Event may take.
const eventMost = 10 * time.Second

// tell says why a pod was not attached: to the log, and to the pod by one Event,
// which also names annotations that are misspelt: these may be why. What a DEL ended
// is nobody's failure.
func (s *Server) tell(ctx context.Context, a *attempt, err error) {
	if errors.Is(err, errInterrupted) {
		s.log.Info("attaching a pod was ended by DEL", "pod", a.podName(), "sandbox", a.call.ContainerID)
		return
	}
	s.log.Warn("a pod was not attached", "pod", a.podName(), "sandbox", a.call.ContainerID, "error", policy.Beginning(err.Error(), cnicall.MostText))
	if a.pod != nil {
		s.event(ctx, a.pod, reasonFailed, strings.Join(append([]string{err.Error()}, annotation.UnknownOfPod(a.pod.Annotations)...), "; "))
	}
}

// warn says what of a pod's wishes came to nothing.
func (s *Server) warn(ctx context.Context, a *attempt) {
	if len(a.given.warnings) > 0 {
		s.event(ctx, a.pod, reasonWarning, "attached, but "+strings.Join(a.given.warnings, "; "))
	}
}

// tellWaiting says what a pod waits for that has no addresses yet.
func (s *Server) tellWaiting(ctx context.Context, pod *metav1.PartialObjectMetadata, key holder.Key) {
	why := s.config.Addresses.Waiting(key)
	if why == nil || ctx.Err() != nil {
		return // it waits no more
	}
	s.log.Info("a pod waits for addresses", "pod", pod.Namespace+"/"+pod.Name, "sandbox", key.Sandbox, "for", why)
	s.event(ctx, pod, reasonWaiting, fmt.Sprintf("waits for addresses for %s so far: %s", waitingAfter, why))
}

// eventAgain is how long nobody is told the same of a pod again: the kubelet tries
// every few seconds, and each Event is an object of the API server.
const eventAgain = 10 * time.Minute

// event makes an Event in the background, once: who looks at the pod later sees
// the next attempt's.
func (s *Server) event(ctx context.Context, pod *metav1.PartialObjectMetadata, reason, text string) {
	about := text
	if reason == reasonWaiting { // it lacks now more, now less, and waits all the same
		about = ""
	}
	// What an Event does not show makes no new one, and need not be remembered.
	if s.isTold(string(pod.UID) + " " + reason + " " + policy.Beginning(about, cluster.MessageMost)) {
		return
	}
	s.background.run(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), eventMost)
		defer stop()
		if err := s.config.Cluster.Event(ctx, pod, reason, text); err != nil {
			s.log.Warn("an Event about a pod cannot be made", "pod", pod.Namespace+"/"+pod.Name, "reason", reason, "error", err)
		}
	})
}

// isTold says whether an Event was made a moment ago, and remembers that it is
// made now.
func (s *Server) isTold(event string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Now()
	maps.DeleteFunc(s.told, func(_ string, at time.Time) bool { return now.Sub(at) >= eventAgain })
	if _, is := s.told[event]; is {
		return true
	}
	s.told[event] = now
	return false
}

// podOf is the pod of a record, as far as Events need it.
func podOf(att record.Attachment) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: att.Namespace, Name: att.Name, UID: types.UID(att.PodUID),
	}}
}

// attached does what follows the answer: neighbours, watchers and the API server
// are told.
func (s *Server) attached(ctx context.Context, a *attempt) {
	s.metrics.steps.WithLabelValues("attach").Observe(a.att.Report.Took.Seconds())
	s.log.Info("a pod is attached", "pod", a.podName(), "sandbox", a.call.ContainerID, "networks", len(a.att.Networks), "took", a.att.Report.Took)
	if a.vouches() {
		s.config.Addresses.Vouch(a.key())
	}
	s.warn(ctx, a)
	s.claim(a.att)
	if hasOwn(a.pod) {
		s.publish(a.att) // of all others the API server knows as much
	}
	if len(a.targets) == 0 {
		return
	}
	ns := a.ns
	a.ns = nil // it is closed behind the announcements
	s.background.run(func() {
		defer func() { _ = ns.Close() }() // it is only asked
		within, stop := context.WithTimeout(context.WithoutCancel(ctx), eventMost)
		defer stop()
		if err := s.prober.Announce(within, ns.FD(), a.targets); err != nil {
			s.log.Debug("neighbours were not told of a pod's addresses", "pod", a.podName(), "error", err)
		}
	})
}

// copyDeviceInfo puts what a device plugin says of a device to what the network
// has, where status and other plugins look for it.
func (s *Server) copyDeviceInfo(a *attempt) {
	if s.config.DeviceInfo == "" {
		return
	}
	for _, n := range a.list {
		if n.device == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(s.config.DeviceInfo, npwg.PluginDeviceFile(n.chain.Resource, n.device)))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		path := filepath.Join(s.config.DeviceInfo, npwg.NetworkDeviceFile(a.call.ContainerID, n.selected.Interface))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755) //nolint:gosec // plugins of others read it
		}
		if err == nil {
			err = os.WriteFile(path, text, 0o644) //nolint:gosec // plugins of others read it
		}
		if err != nil {
			a.att.Report.Notes = append(a.att.Report.Notes, n.selected.Interface+": device information is not there: "+err.Error())
		}
	}
}

// deviceInfo is what is known of the device of an interface; nil if nothing is.
func (s *Server) deviceInfo(sandbox, name string) *npwg.DeviceInfo {
	if s.config.DeviceInfo == "" {
		return nil
	}
	path := filepath.Join(s.config.DeviceInfo, npwg.NetworkDeviceFile(sandbox, name))
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var info npwg.DeviceInfo
	if err == nil {
		info, err = npwg.ParseDeviceInfo(text)
	}
	if err != nil {
		s.log.Warn("device information of an interface is left out", "path", path, "error", err)
		return nil
	}
	return &info
}
