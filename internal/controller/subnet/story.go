package subnet

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// story tells applications why they wait, once for each change, and counts
// those that do.
type story struct {
	recorder events.EventRecorder
	unserved *prometheus.GaugeVec

	mu    sync.Mutex
	waits map[policy.Application]told // by application without UID
}

// told is what an application has been told.
type told struct {
	uid    string
	causes []cause
}

// cause is why an application waits: reason and text.
type cause struct{ reason, text string }

func newStory(recorder events.EventRecorder, registry prometheus.Registerer) (*story, error) {
	s := &story{
		recorder: recorder,
		unserved: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "railhead_controller_applications_unserved",
			Help: "Applications that ask for a pool of their own and do not have it as they ask, by reason.",
		}, []string{"reason"}),
		waits: map[policy.Application]told{},
	}
	if registry == nil {
		return s, nil
	}
	if err := registry.Register(s.unserved); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
		return nil, err
	}
	return s, nil
}

// problems notes why an application waits, and tells it what is new.
func (s *story) problems(app policy.Application, problems []policy.Problem) {
	key := app
	key.UID = ""
	now := told{uid: string(app.UID)}
	for _, p := range problems {
		now.causes = append(now.causes, cause{p.Reason, p.Error.Error()})
	}
	s.mu.Lock()
	before := s.waits[key]
	if s.waits[key] = now; len(now.causes) == 0 {
		delete(s.waits, key)
	}
	s.count(before, -1)
	s.count(now, 1)
	s.mu.Unlock()
	for _, c := range now.causes {
		if before.uid != now.uid || !slices.Contains(before.causes, c) {
			s.event(reference(app), corev1.EventTypeWarning, c.reason, c.text)
		}
	}
}

// count counts an application once for each reason.
func (s *story) count(t told, by float64) {
	var reasons []string
	for _, c := range t.causes {
		reasons = append(reasons, c.reason)
	}
	slices.Sort(reasons)
	for _, reason := range slices.Compact(reasons) {
		s.unserved.WithLabelValues(reason).Add(by)
	}
}

// waiting are the applications that wait, in order.
func (s *story) waiting() []policy.Application {
	s.mu.Lock()
	defer s.mu.Unlock()
	var apps []policy.Application
	for app := range s.waits {
		apps = append(apps, app)
	}
	slices.SortFunc(apps, func(a, b policy.Application) int { return cmp.Compare(a.String(), b.String()) })
	return apps
}

// pool tells an application what was done with a pool of its own.
func (s *story) pool(app policy.Application, reason, text string) {
	if app.UID != "" { // nobody is left to be told otherwise
		s.event(reference(app), corev1.EventTypeNormal, reason, text)
	}
}

// subnet tells what became of a subnet.
func (s *story) subnet(subnet *v2beta1.SpiderSubnet, kind, reason, text string) {
	s.event(&corev1.ObjectReference{
		APIVersion: v2beta1.GroupVersion.String(), Kind: "SpiderSubnet", Name: subnet.Name, UID: subnet.UID,
	}, kind, reason, text)
}

func (s *story) event(regarding *corev1.ObjectReference, kind, reason, text string) {
	s.recorder.Eventf(regarding, nil, kind, reason, "Reconcile", "%s", text)
}

// reference is an application as Events name it.
func reference(app policy.Application) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: app.GroupVersion, Kind: app.Kind, Namespace: app.Namespace, Name: app.Name, UID: app.UID,
	}
}
