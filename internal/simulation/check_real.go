package simulation

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
)

// realNode checks that nothing is said of a real node that it says itself.
func (c *checker) realNode() {
	s := c.scenario
	const want = "none, as the node is a real one"
	c.unset("node", s.Node, want)
	c.unset("kernel", s.Kernel, want)
	c.unset("cgroup", s.Cgroup, want)
	c.unset("kubernetes.forbidden", s.Kubernetes.Forbidden, want)
	c.unset("kubernetes.absent", s.Kubernetes.Absent, want)
	if s.NetNSMode != modeShared {
		c.fail("netnsMode", s.NetNSMode, "%s, as nothing that is simulated moves on a real node", modeShared)
	}
}

// unset checks that a field has its zero value.
func (c *checker) unset(field string, value any, want string) {
	if v := reflect.ValueOf(value); !v.IsZero() {
		c.fail(field, value, "%s", want)
	}
}

// realCard checks that a card can stand on a netdev, and is told nothing that the
// netdev tells.
func (c *checker) realCard(field string, card *Card) {
	if card.Netdev == "" {
		c.fail(field+".netdev", card.Netdev, "the name of the netdev that the card stands on, such as enp11s0f0np0")
	}
	const want = "none, as that of the real netdev is taken"
	c.unset(field+".address", card.Address, want)
	c.unset(field+".mtu", card.MTU, want)
	c.unset(field+".vfs", card.VFs, "0, as a real netdev has the VFs that it has")
	c.unset(field+".gpu", card.GPU, "false, as the node is a real one")
	if card.LinkLayer != linkRoCE {
		c.fail(field+".linkLayer", card.LinkLayer, "%s, as the card stands on an Ethernet netdev", linkRoCE)
	}
	if d := drivers[card.Driver]; d != nil && !d.hasNetdev {
		c.fail(field+".driver", card.Driver, "one whose cards have netdevs")
	}
}

// realPod checks that pods can be found, and that nothing is said of them that
// Kubernetes says.
func (c *checker) realPod(field string, pod *Pod) {
	if len(pod.Match) == 0 {
		c.fail(field+".match", "", `variables of the environment of the pods' processes, such as {HOSTNAME: "llama-*"}`)
	}
	for _, name := range slices.Sorted(maps.Keys(pod.Match)) {
		c.matches(field+".match", name, variableName, "the name of a variable of the environment, such as HOSTNAME")
		if _, err := path.Match(pod.Match[name], ""); err != nil {
			c.fail(field+".match."+name, pod.Match[name], "a pattern in which * stands for anything but /, ? for a sign, and [a-z] for one of some")
		}
	}
	const want = "none, as the pods are those of a real node"
	for _, told := range []struct {
		name  string
		value any
	}{
		{"from", pod.From.Duration},
		{"for", pod.For.Duration},
		{"every", pod.Every.Duration},
		{"namespace", pod.Namespace},
		{"name", pod.Name},
		{"uid", pod.UID},
		{"labels", pod.Labels},
		{"annotations", pod.Annotations},
		{"owners", pod.Owners},
		{"hostNetwork", pod.HostNetwork},
		{"resource", pod.Resource},
		{"unscheduled", pod.Unscheduled},
		{"noPodResource", pod.NoPodResource},
	} {
		c.unset(fmt.Sprintf("%s.%s", field, told.name), told.value, want)
	}
	if pod.Use != modeShared {
		c.fail(field+".use", pod.Use, "%s, as nothing that is simulated moves on a real node", modeShared)
	}
}
