package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"railhead/internal/policy"
)

// noteMost is how many bytes the API server takes as the note of an Event; one
// that is longer it refuses.
const noteMost = 1024

// briefManager is a manager whose Events are as short as the API server wants
// them. Conditions have all of what is cut off.
type briefManager struct{ ctrl.Manager }

// GetEventRecorder implements recorder.Provider.
func (m briefManager) GetEventRecorder(name string) events.EventRecorder {
	return briefRecorder{m.Manager.GetEventRecorder(name)}
}

type briefRecorder struct{ events.EventRecorder }

// Eventf implements events.EventRecorder.
func (r briefRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", policy.Beginning(fmt.Sprintf(note, args...), noteMost))
}
