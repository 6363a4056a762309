package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mostObjects bounds what a scenario can have of one kind.
const mostObjects = 10000

func (c *checker) pods() {
	taken := map[string]string{} // devices by the pod that has them alone
	names := map[string]string{}
	for i := range c.scenario.Pods {
		pod, path := &c.scenario.Pods[i], fmt.Sprintf("pods[%d]", i)
		c.pod(path, pod)
		if c.scenario.RealNode {
			c.realPod(path, pod)
			continue
		}
		c.inventedPod(path, pod)
		name := pod.Namespace + "/" + pod.Name
		if other, ok := names[name]; ok {
			c.fail(path+".name", name, "another than that of %s", other)
		}
		names[name] = path
		for j, device := range pod.Devices {
			field := fmt.Sprintf("%s.devices[%d]", path, j)
			if other, ok := taken[device]; ok && pod.Use == modeExclusive {
				c.fail(field, device, "a device that %s does not use", other)
			}
			taken[device] = path
		}
	}
}

func (c *checker) pod(path string, pod *Pod) {
	c.within(path+".processes", pod.Processes, 1, 64)
	c.within(path+".queuePairs", pod.QueuePairs, 0, mostObjects)
	c.within(path+".connections", pod.Connections, 0, mostObjects)
	c.within(path+".failedQPs", pod.Failed, 0, pod.QueuePairs)
	c.within(path+".memoryRegions.count", pod.MemoryRegions.Count, 0, mostObjects)
	c.traffic(path+".traffic", pod.Traffic)
	c.known(path+".devices", pod.Devices)
}

// inventedPod checks what the API server is to say of a pod.
func (c *checker) inventedPod(path string, pod *Pod) {
	c.when(path, pod.When)
	c.matches(path+".namespace", pod.Namespace, dnsName, wantDNS)
	c.matches(path+".name", pod.Name, dnsName, wantDNS)
	if len(pod.Match) > 0 {
		c.fail(path+".match", pod.Match, "none, as the node is not a real one (realNode)")
	}
	if pod.UID != "" {
		c.matches(path+".uid", pod.UID, uidForm, "a UID in the form of a UUID, in small letters")
		if pod.Every.Duration > 0 {
			c.fail(path+".uid", pod.UID, "none, as each of the pods has another")
		}
	}
	for i, o := range pod.Owners {
		c.owner(fmt.Sprintf("%s.owners[%d]", path, i), o)
	}
	c.use(path, pod)
}

func (c *checker) owner(path string, o Owner) {
	c.matches(path+".apiVersion", o.APIVersion, apiVersion, "a group and version such as apps/v1")
	c.matches(path+".kind", o.Kind, kindName, "a kind such as ReplicaSet")
	c.matches(path+".name", o.Name, dnsName, wantDNS)
}

// use checks that the pod can reach its devices.
func (c *checker) use(path string, pod *Pod) {
	c.oneOf(path+".use", pod.Use, modeExclusive, modeShared)
	switch {
	case len(pod.Devices) == 0:
	case pod.Use == modeExclusive && pod.HostNetwork:
		c.fail(path+".use", pod.Use, "%s, as nothing moves into the host's network", modeShared)
	case pod.Use == modeShared && !pod.HostNetwork && c.scenario.NetNSMode == modeExclusive:
		c.fail(path+".use", pod.Use, "%s, or hostNetwork: devices of the host are not seen in pods while netnsMode is %s",
			modeExclusive, modeExclusive)
	}
}

// known checks that devices are named that there are.
func (c *checker) known(path string, devices []string) {
	for i, name := range devices {
		if c.functions[name] == nil {
			c.fail(fmt.Sprintf("%s[%d]", path, i), name, "one of %s", some(slices.Sorted(maps.Keys(c.functions))))
		}
		if slices.Contains(devices[:i], name) {
			c.fail(fmt.Sprintf("%s[%d]", path, i), name, "each device once")
		}
	}
}

// some lists the first of many names.
func some(names []string) string {
	const most = 40
	if len(names) > most {
		names = append(names[:most:most], "…")
	}
	return strings.Join(names, ", ")
}
