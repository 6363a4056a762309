package injection

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// raise has the containers of a pod ask for as much of each resource as is needed,
// and says whether any had to be changed. What no container asks for goes to the
// first; else the first that asks for it gets what is missing from all of them
// together.
func raise(pod *corev1.Pod, needs map[string]int64) (changed bool) {
	containers := running(pod)
	if len(containers) == 0 {
		return false
	}
	for name, need := range needs {
		if raiseResource(containers, corev1.ResourceName(name), need) {
			changed = true
		}
	}
	return changed
}

func raiseResource(containers []*corev1.Container, name corev1.ResourceName, need int64) (changed bool) {
	target := containers[0]
	for _, c := range containers {
		amount, asks := askedBy(c, name)
		if need -= amount; need <= 0 {
			return false
		}
		if _, already := askedBy(target, name); asks && !already {
			target = c
		}
	}
	amount, _ := askedBy(target, name)
	setResource(target, name, amount+need)
	return true
}

// running returns the containers that run beside each other: an init container is done
// with its devices before the others start, unless it is a sidecar.
func running(pod *corev1.Pod) []*corev1.Container {
	var containers []*corev1.Container
	for i := range pod.Spec.Containers {
		containers = append(containers, &pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	return containers
}

// askedBy is how much of a resource a container asks for, and whether it names it
// at all.
func askedBy(c *corev1.Container, name corev1.ResourceName) (amount int64, asks bool) {
	limit, limited := c.Resources.Limits[name]
	request, requested := c.Resources.Requests[name]
	switch {
	case limited:
		return max(0, limit.Value()), true
	case requested:
		return max(0, request.Value()), true
	}
	return 0, false
}

// setResource sets the limit, and the request where there is one: of devices, both
// must be the same.
func setResource(c *corev1.Container, name corev1.ResourceName, amount int64) {
	quantity := *resource.NewQuantity(amount, resource.DecimalSI)
	if c.Resources.Limits == nil {
		c.Resources.Limits = corev1.ResourceList{}
	}
	c.Resources.Limits[name] = quantity
	if _, requested := c.Resources.Requests[name]; requested {
		c.Resources.Requests[name] = quantity
	}
}
