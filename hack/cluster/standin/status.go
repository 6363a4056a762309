package standin

import (
	"encoding/json"
	"net/netip"
	"strings"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// running is the status of a pod all of whose containers run since a time.
func (p *pod) running(hosts, ips []netip.Addr, since meta.Time) *core.PodStatus {
	s := &core.PodStatus{Phase: core.PodRunning, StartTime: &since}
	for _, ip := range hosts {
		s.HostIPs = append(s.HostIPs, core.HostIP{IP: ip.String()})
	}
	for _, ip := range ips {
		s.PodIPs = append(s.PodIPs, core.PodIP{IP: ip.String()})
	}
	if len(hosts) > 0 {
		s.HostIP = hosts[0].String()
	}
	if len(ips) > 0 {
		s.PodIP = ips[0].String()
	}
	for _, c := range p.containers {
		s.ContainerStatuses = append(s.ContainerStatuses, p.alive(c, since))
	}
	for _, c := range p.initials {
		status := p.alive(c, since)
		if !c.sidecar {
			status = p.terminated(c, 0, since, since)
			status.Ready = true // this is what the word means for them
		}
		s.InitContainerStatuses = append(s.InitContainerStatuses, status)
	}
	s.Conditions = conditions(core.ConditionTrue, "", since)
	return s
}

// finished is the status of a pod whose containers have all ended with its exit code.
func (p *pod) finished(code int32, since, until meta.Time) *core.PodStatus {
	s := &core.PodStatus{Phase: core.PodSucceeded}
	reason := "PodCompleted"
	if code != 0 {
		s.Phase, reason = core.PodFailed, "PodFailed"
	}
	for _, c := range p.containers {
		s.ContainerStatuses = append(s.ContainerStatuses, p.terminated(c, code, since, until))
	}
	s.Conditions = conditions(core.ConditionFalse, reason, until)
	return s
}

// rejected is the status of a pod that was bound to a node that cannot run it.
func rejected(reason, message string, now meta.Time) *core.PodStatus {
	return &core.PodStatus{Phase: core.PodFailed, Reason: reason, Message: "Pod was rejected: " + message, StartTime: &now}
}

// alive is the status of a container that runs.
func (p *pod) alive(c container, since meta.Time) core.ContainerStatus {
	started := true
	return core.ContainerStatus{
		Name: c.name, Image: c.image, ImageID: c.image, ContainerID: p.containerID(c), Ready: true, Started: &started,
		State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: since}},
	}
}

// terminated is the status of a container that has ended.
func (p *pod) terminated(c container, code int32, since, until meta.Time) core.ContainerStatus {
	reason, started := "Completed", false
	if code != 0 {
		reason = "Error"
	}
	return core.ContainerStatus{
		Name: c.name, Image: c.image, ImageID: c.image, ContainerID: p.containerID(c), Started: &started,
		State: core.ContainerState{Terminated: &core.ContainerStateTerminated{
			ExitCode: code, Reason: reason, StartedAt: since, FinishedAt: until, ContainerID: p.containerID(c),
		}},
	}
}

// containerID is a name for a container that there is not.
func (p *pod) containerID(c container) string {
	return "standin://" + strings.ReplaceAll(string(p.uid), "-", "") + "-" + c.name
}

// conditions are those that a kubelet sets, but for PodScheduled, which the scheduler does.
func conditions(ready core.ConditionStatus, reason string, now meta.Time) []core.PodCondition {
	all := []core.PodCondition{
		{Type: core.PodReadyToStartContainers, Status: ready},
		{Type: core.PodInitialized, Status: core.ConditionTrue},
		{Type: core.PodReady, Status: ready, Reason: reason},
		{Type: core.ContainersReady, Status: ready, Reason: reason},
	}
	for i := range all {
		all[i].LastTransitionTime = now
	}
	return all
}

// patch is a status as a strategic merge patch, which fails if the pod is another one of the same name. Conditions are
// merged by their type; addresses would be merged too, and are replaced.
func (p *pod) patch(s *core.PodStatus) ([]byte, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var status map[string]any
	if err := json.Unmarshal(raw, &status); err != nil {
		return nil, err
	}
	for _, list := range []string{"podIPs", "hostIPs"} {
		if ips, ok := status[list].([]any); ok {
			status[list] = append([]any{map[string]string{"$patch": "replace"}}, ips...)
		}
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.uid}, "status": status})
}
