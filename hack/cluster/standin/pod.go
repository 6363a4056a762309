package standin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/hack/cluster/standin/deviceplugin"
)

// Annotations by which a pod says what the program that it does not have would do.
const (
	RunsFor  = "standin.railhead.io/runs-for"  // it ends by itself after so long: "30s"; not with restartPolicy Always
	ExitCode = "standin.railhead.io/exit-code" // with this status, 0 if there is none
	StopsIn  = "standin.railhead.io/stops-in"  // it takes so long to end when told, at most the pod's grace; 0 if there is none
)

// pod is what is kept of a pod: a thousandth of what the API server tells.
type pod struct {
	uid             types.UID
	namespace, name string
	node            string
	annotations     map[string]string
	hostNetwork     bool
	containers      []container
	initials        []container // init containers, sidecars among them
	devices         []deviceplugin.Container
	restarts        bool // restartPolicy Always
	behaviour       behaviour
}

// container is what a status says of one that its specification said.
type container struct {
	name, image string
	sidecar     bool // an init container that goes on running
}

// behaviour is what a pod's annotations say.
type behaviour struct {
	runsFor  time.Duration // 0: until it is told to end
	exitCode int32
	stopsIn  time.Duration
}

// newPod takes from a pod what matters here. Annotations that cannot be read are told by the error, and are as if they
// were not there.
func newPod(from *core.Pod) (*pod, error) {
	p := &pod{
		uid: from.UID, namespace: from.Namespace, name: from.Name, node: from.Spec.NodeName,
		annotations: maps.Clone(from.Annotations),
		hostNetwork: from.Spec.HostNetwork,
		restarts:    from.Spec.RestartPolicy == core.RestartPolicyAlways,
	}
	for _, c := range from.Spec.InitContainers {
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == core.ContainerRestartPolicyAlways
		p.devices = append(p.devices, deviceplugin.Container{Name: c.Name, Init: !sidecar, Devices: deviceWishes(c)})
		p.initials = append(p.initials, container{c.Name, c.Image, sidecar})
	}
	for _, c := range from.Spec.Containers {
		p.devices = append(p.devices, deviceplugin.Container{Name: c.Name, Devices: deviceWishes(c)})
		p.containers = append(p.containers, container{name: c.Name, image: c.Image})
	}
	var err error
	p.behaviour, err = readBehaviour(from.Annotations)
	return p, err
}

// deviceWishes are the limits of resources that have a domain, as those of device plugins do; nil if there are none.
func deviceWishes(c core.Container) map[string]int {
	var wishes map[string]int
	for name, quantity := range c.Resources.Limits {
		domain, _, found := strings.Cut(string(name), "/")
		if !found || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
			continue
		}
		if wishes == nil {
			wishes = map[string]int{}
		}
		wishes[string(name)] = int(quantity.Value())
	}
	return wishes
}

func readBehaviour(annotations map[string]string) (behaviour, error) {
	var b behaviour
	var bad []string
	for name, into := range map[string]*time.Duration{RunsFor: &b.runsFor, StopsIn: &b.stopsIn} {
		text, ok := annotations[name]
		if !ok {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			bad = append(bad, fmt.Sprintf("annotation %s: %q: want a duration as 30s or 500ms", name, text))
			continue
		}
		*into = d
	}
	if text, ok := annotations[ExitCode]; ok {
		code, err := strconv.ParseUint(text, 10, 8)
		if err != nil {
			bad = append(bad, fmt.Sprintf("annotation %s: %q: want 0 to 255", ExitCode, text))
		}
		b.exitCode = int32(code)
	}
	if len(bad) > 0 {
		slices.Sort(bad)
		return b, fmt.Errorf("%s", strings.Join(bad, "; "))
	}
	return b, nil
}

// ended tells whether a pod has come to its end.
func ended(p *core.Pod) bool {
	return p.Status.Phase == core.PodSucceeded || p.Status.Phase == core.PodFailed
}

// grace is how long a pod that is being deleted may take to end.
func grace(p *core.Pod) time.Duration {
	if p.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
}

// String is what people call a pod.
func (p *pod) String() string { return p.namespace + "/" + p.name }

// preconditions let a request fail if the pod is another one of the same name by then.
func (p *pod) preconditions() *meta.Preconditions { return &meta.Preconditions{UID: &p.uid} }
