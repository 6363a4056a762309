package cluster

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// These are Kubernetes' own kinds with the fields that are needed here and no
// others, which are not even kept when they are read: of a Node, that is less
// than a hundredth.

func coreVersion() schema.GroupVersion { return schema.GroupVersion{Version: "v1"} }

// addCore makes them known to a scheme.
func addCore(s *runtime.Scheme) error {
	version := coreVersion()
	for kind, object := range map[string]runtime.Object{
		"Node": &node{}, "NodeList": &nodeList{}, "ConfigMap": &configMap{}, "ConfigMapList": &configMapList{}, "Event": &event{},
	} {
		s.AddKnownTypeWithName(version.WithKind(kind), object)
	}
	metav1.AddToGroupVersion(s, version)
	return nil
}

type node struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Status nodeStatus `json:"status"`
}

type nodeStatus struct {
	Addresses []nodeAddress `json:"addresses,omitempty"`
}

type nodeAddress struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

type nodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []node `json:"items"`
}

// configMap is one with its texts.
type configMap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Data map[string]string `json:"data,omitempty"`
}

type configMapList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []configMap `json:"items"`
}

// event is an Event of the core API.
type event struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	InvolvedObject objectReference `json:"involvedObject"`
	Reason         string          `json:"reason"`
	Message        string          `json:"message"`
	Source         eventSource     `json:"source"`
	FirstTimestamp metav1.Time     `json:"firstTimestamp"`
	LastTimestamp  metav1.Time     `json:"lastTimestamp"`
	Count          int32           `json:"count"`
	Type           string          `json:"type"`
}

type objectReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

type eventSource struct {
	Component string `json:"component"`
	Host      string `json:"host"`
}

// DeepCopyObject implements runtime.Object, as those below do.
func (n *node) DeepCopyObject() runtime.Object {
	c := &node{TypeMeta: n.TypeMeta, ObjectMeta: *n.DeepCopy()}
	c.Status.Addresses = append(c.Status.Addresses, n.Status.Addresses...)
	return c
}

// DeepCopyObject copies the list.
func (l *nodeList) DeepCopyObject() runtime.Object {
	c := &nodeList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy()}
	for i := range l.Items {
		if n, ok := l.Items[i].DeepCopyObject().(*node); ok {
			c.Items = append(c.Items, *n)
		}
	}
	return c
}

// DeepCopyObject copies the ConfigMap.
func (m *configMap) DeepCopyObject() runtime.Object {
	return &configMap{TypeMeta: m.TypeMeta, ObjectMeta: *m.DeepCopy(), Data: maps.Clone(m.Data)}
}

// DeepCopyObject copies the list.
func (l *configMapList) DeepCopyObject() runtime.Object {
	c := &configMapList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy()}
	for i := range l.Items {
		if m, ok := l.Items[i].DeepCopyObject().(*configMap); ok {
			c.Items = append(c.Items, *m)
		}
	}
	return c
}

// DeepCopyObject copies the Event.
func (e *event) DeepCopyObject() runtime.Object {
	c := *e
	c.ObjectMeta = *e.DeepCopy()
	return &c
}
