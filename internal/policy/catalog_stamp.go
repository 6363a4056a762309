package policy

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// stamp is which object something was parsed from, and in which state.
type stamp struct {
	name            string
	uid             types.UID
	resourceVersion string
	generation      int64
	created         time.Time
}

func stampOf(obj metav1.Object) stamp {
	return stamp{obj.GetName(), obj.GetUID(), obj.GetResourceVersion(), obj.GetGeneration(), obj.GetCreationTimestamp().Time}
}

// same says whether nothing changed since.
func (s stamp) same(obj metav1.Object) bool {
	return s.resourceVersion != "" && s.uid == obj.GetUID() && s.resourceVersion == obj.GetResourceVersion()
}

// compare orders objects by who came first, and by UID and name where the
// clock says nothing. All replicas answer the same.
func (s stamp) compare(other stamp) int {
	return cmp.Or(s.created.Compare(other.created), strings.Compare(string(s.uid), string(other.uid)), strings.Compare(s.name, other.name))
}

// contest is one object's side in conflicts with others.
type contest struct {
	stamp

	kind string
	// stored: it is there as they are, so that only the later one loses.
	stored bool
}

// loses says whether a conflict with another object is this one's fault.
func (c contest) loses(kind string, other stamp) bool {
	if c.kind == kind && c.name == other.name {
		return false
	}
	return !c.stored || c.compare(other) > 0
}
