package cluster

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/hack/cluster/image"
	"railhead/hack/cluster/testcluster"
)

// TestController wants networks to come out of what users write, pods to be given
// them, pods to start without the controller, and nothing of it to stay.
func TestController(t *testing.T) {
	c := require(t)
	c.install(t)
	ns := c.Namespace(t)
	c.Kubectl(t, "create", "namespace", networksNS)
	c.KubectlAfter(t, "delete", "namespace", networksNS)

	t.Run("networks", func(t *testing.T) {
		c.hasRights(t) // before the first controllers go, and their logs with them
		makesNetworks(t, c)
		injects(t, c, ns)
	})
	c.KubectlAfter(t, "delete", "spiderippools", "--all")

	c.Kubectl(t, "scale", "-n", home, controller, "--replicas=0")
	c.Kubectl(t, "wait", "-n", home, "--for=delete", "pod", "-l", "app.kubernetes.io/name=railhead-controller", "--timeout", testcluster.Patience.String())
	c.Apply(t, ns, testcluster.Web(2))
	c.RolledOut(t, ns, "deployment/web")
	if _, err := c.TryKubectl(t.Context(), asking, "create", "-n", ns, "-f", "-"); err == nil {
		t.Error("a pod that asks for networks is created though nobody can give it any")
	}
	c.Kubectl(t, "scale", "-n", home, controller, "--replicas=2")
	c.RolledOut(t, home, controller)
	c.admits(t) // also what is deleted when the test has ended
}

// makesNetworks applies the printed networks and wants a NetworkAttachmentDefinition
// of each, and a misspelt field to be refused.
func makesNetworks(t *testing.T, c *cluster) {
	t.Helper()
	c.Kubectl(t, "apply", "-f", acceptance+"/ai-cluster-macvlan/network.yaml")
	c.Kubectl(t, "apply", "-f", acceptance+"/inject/network.yaml")
	c.Kubectl(t, "wait", "-n", networksNS, "--for=condition=Ready", "--timeout", testcluster.Patience.String(), "spidermultusconfigs", "--all")
	c.Kubectl(t, "wait", "--for=condition=Ready", "--timeout", testcluster.Patience.String(), "spiderippools", "--all")
	nads := strings.Fields(c.Kubectl(t, "get", "network-attachment-definitions", "-n", networksNS, "-o", "jsonpath={.items[*].metadata.name}"))
	if len(nads) != 16 {
		t.Errorf("%d NetworkAttachmentDefinitions, want 16: %v", len(nads), nads)
	}
	if out, err := c.TryKubectl(t.Context(), "", "patch", "spiderippool", "gpu1-net11", "--type=merge", "-p", `{"spec":{"gatway":"172.16.11.1"}}`); err == nil || !strings.Contains(err.Error(), `"gateway"`) {
		t.Errorf("an unknown field: %s%v, want it refused with the name that is meant", out, err)
	}
}

// asking is a pod that asks for networks.
const asking = `
apiVersion: v1
kind: Pod
metadata:
  name: asks
  annotations: {cni.spidernet.io/rdma-resource-inject: rdma-network}
spec:
  containers:
  - {name: main, image: "` + image.Tools + `", command: [sleep, infinity]}
`

// injects wants a Deployment's pods to have the networks and resources of the
// printed example, which no node has yet.
func injects(t *testing.T, c *cluster, ns string) {
	t.Helper()
	c.Kubectl(t, "apply", "-n", ns, "-f", acceptance+"/inject/workload.yaml")
	var pod corev1.Pod
	testcluster.Eventually(t, func() string {
		pods, err := c.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=ai-app"})
		if err != nil {
			return err.Error()
		}
		if len(pods.Items) == 0 {
			return "a pod of ai-app; events:\n" + c.Kubectl(t, "get", "events", "-n", ns)
		}
		pod = pods.Items[0]
		return ""
	})
	var networks []struct{ Name, Namespace string }
	if err := json.Unmarshal([]byte(pod.Annotations["k8s.v1.cni.cncf.io/networks"]), &networks); err != nil {
		t.Errorf("networks %q: %v", pod.Annotations["k8s.v1.cni.cncf.io/networks"], err)
	}
	var resources, want []string
	for _, name := range slices.Sorted(maps.Keys(pod.Spec.Containers[0].Resources.Limits)) {
		resources = append(resources, string(name))
	}
	for _, rail := range "12345678" {
		want = append(want, "spidernet.io/gpu"+string(rail)+"rdma")
	}
	if diff := cmp.Diff(want, resources); diff != "" || len(networks) != 8 {
		t.Errorf("%d networks, want 8; limits (-want +got):\n%s", len(networks), diff)
	}
}
