package boards

import (
	"fmt"
	"strings"
)

// scope is the label matchers that a dashboard's variables make: which series
// it is about. A variable that stands at All matches series without the label
// too, so a Prometheus that knows no clusters needs no other queries.
type scope string

const (
	inCluster  scope = `cluster=~"$cluster"`
	onNode     scope = inCluster + `, instance=~"$node"`
	ofPod      scope = inCluster + `, pod_namespace=~"$namespace", pod_name=~"$pod"`
	ofWorkload scope = inCluster + `, owner_kind=~"$kind", owner_namespace=~"$namespace", owner_name=~"$name"`
)

// Labels to sum by.
const (
	byNode     = "cluster, instance"
	byDevice   = "cluster, instance, device, netdev"
	byPort     = "cluster, instance, pf_device, port, rail"
	byPod      = "cluster, pod_namespace, pod_name"
	byPodNIC   = "cluster, instance, pod_namespace, pod_name, device, port"
	byWorkload = "cluster, owner_kind, owner_namespace, owner_name"
)

// series selects the series of a name.
func (s scope) series(name string, matchers ...string) string {
	return name + "{" + strings.Join(append([]string{string(s)}, matchers...), ", ") + "}"
}

// rate is how fast a counter family grows, by the name of the family.
func (s scope) rate(family string, matchers ...string) string {
	return "rate(" + s.series(family+"_total", matchers...) + "[$__rate_interval])"
}

func sum(by, expr string) string {
	return fmt.Sprintf("sum by (%s) (%s)", by, expr)
}

func highest(by, expr string) string {
	return fmt.Sprintf("max by (%s) (%s)", by, expr)
}

func top(n int, expr string) string {
	return fmt.Sprintf("topk(%d, %s)", n, expr)
}

// bits turns bytes into what networks are sold by.
func bits(expr string) string { return expr + " * 8" }

// ports is the sum of a series over all functions of each physical port: a PF
// and its VFs. The counters of a PF do not hold those of its VFs, and a
// representor counts its VF's traffic a second time, so each function counts
// once and no representor does.
func (s scope) ports(expr string, more ...string) string {
	by := strings.Join(append([]string{byPort}, more...), ", ")
	return sum(by, expr+" * on (cluster, instance, device, port) group_left (pf_device, rail) "+s.function(`function!="rep"`, `rail=~"$rail"`))
}

// function tells of each function, by its port, the physical port that it is
// on, and the rail. A PF, which has no pf_device, is its own.
func (s scope) function(matchers ...string) string {
	return highest("cluster, instance, device, port, pf_device, rail", onCard(s, "rdma_port_info", matchers...))
}

// onCard selects series with a pf_device, which those of a PF lack.
func onCard(s scope, name string, matchers ...string) string {
	with := func(matcher string) string { return s.series(name, append([]string{matcher}, matchers...)...) }
	return `label_replace(` + with(`pf_device=""`) + `, "pf_device", "$1", "device", "(.+)") or ` + with(`pf_device!=""`)
}

// portSpeed is the speed of each physical port in bytes a second.
func (s scope) portSpeed() string {
	return highest(byPort, s.series("rdma_port_speed_bytes_per_second")+
		" * on (cluster, instance, device, port) group_left (pf_device, rail) "+s.function(`function!="rep"`, `rail=~"$rail"`))
}

// portUse is which part of each physical port's speed a direction uses.
func (s scope) portUse(direction string) string {
	return s.ports(s.rate("rdma_port_"+direction+"_bytes")) + " / " + s.portSpeed()
}

// busier is the use of each port in the direction that uses it more: ports
// are full duplex.
func (s scope) busier(by string) string {
	read, write := s.portUse("receive"), s.portUse("transmit")
	return highest(by, fmt.Sprintf("(%s) or label_replace(%s, \"direction\", \"tx\", \"\", \"\")", read, write))
}

// functions counts each function of the cluster once.
func (s scope) functions(by, expr string) string {
	return sum(by, expr+" * on (cluster, instance, device, port) group_left () "+
		highest("cluster, instance, device, port", s.series("rdma_port_info", `function!="rep"`)))
}

// pauseOccupancy is which part of the time each physical port was paused, by
// direction and priority.
func (s scope) pauseOccupancy(matchers ...string) string {
	return s.rate("rdma_port_priority_pause_duration_seconds", matchers...)
}

// ownPorts is 1 for each physical port that a pod's devices are on, under the
// labels of the pod and with the port's device as "device".
func (s scope) ownPorts() string {
	return `label_replace(` + highest("cluster, instance, pod_namespace, pod_name, pf_device", onCard(s, "rdma_pod_device_info")) +
		`, "device", "$1", "pf_device", "(.+)")`
}

// nics gives a series by pod and device the netdev, PF and rail of that device,
// and sums it by these labels.
func (s scope) nics(by, expr string) string {
	return sum(by, expr+" * on (cluster, instance, pod_namespace, pod_name, device) group_left (netdev, pf_device, rail) "+
		highest("cluster, instance, pod_namespace, pod_name, device, netdev, pf_device, rail", onCard(s, "rdma_pod_device_info")))
}

// owned gives a series of a device the labels of the pod that has the device for
// itself, and sums it by these labels. It is for what pods have no family of.
func (s scope) owned(by, expr string) string {
	labels := "pod_namespace, pod_name"
	return sum(by, expr+" * on (cluster, instance, device) group_left ("+labels+") "+
		highest("cluster, instance, device, "+labels, s.series("rdma_pod_device_info", `attribution=~"exclusive|sole_user"`)))
}
