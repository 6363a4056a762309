package api

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cniv1 "railhead/api/cni/v1"
)

// TestLarge starts the controller in a cluster of 500 pods, by night 5,000, and 200
// networks, and prints its memory and how long until it admits. Neither is asserted.
func TestLarge(t *testing.T) {
	const networks = 200
	pods := times(500, 5000)
	s := Exclusive(t)
	s.Configure(t, usual)
	s.namespace(t, "spiderpool", nil)
	var group errgroup.Group
	group.SetLimit(32)
	for i := range pods {
		group.Go(func() error { return s.Create(t.Context(), rankPod(i)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i := range networks {
		for _, o := range Objects(t, fmt.Sprintf(`
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {name: rail%[1]d}
spec: {ipVersion: 4, subnet: 10.%[1]d.0.0/16, ips: [10.%[1]d.0.1-10.%[1]d.255.254]}
---
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata: {name: rail%[1]d, namespace: spiderpool, annotations: {cni.spidernet.io/rdma-resource-inject: rails%[2]d}}
spec: {cniType: macvlan, macvlan: {master: [ens%[1]d], rdmaResourceName: spidernet.io/rail%[1]d, ippools: {ipv4: [rail%[1]d]}}}
`, i, i/8)) {
			s.Make(t, o)
		}
	}
	builtPrograms(t)
	start := time.Now()
	p := s.Spawn(t, Replica{Name: "replica"}, "")
	p.AwaitReady(t)
	ready := time.Since(start)
	t.Logf("%d pods, %d pools and %d networks: ready after %.1f s with %d MiB", pods, networks, networks, ready.Seconds(), p.Resident(t)>>20)
	s.AwaitWebhooks(t, p.WebhookAddress)
	Eventually(t, func() string {
		var nads cniv1.NetworkAttachmentDefinitionList
		if err := s.List(t.Context(), &nads, client.InNamespace("spiderpool")); err != nil {
			return err.Error()
		}
		if n := len(nads.Items); n != networks {
			return fmt.Sprintf("%d NetworkAttachmentDefinitions, there are %d", networks, n)
		}
		return ""
	})
	t.Logf("all networks are made after %.1f s, with %d MiB", time.Since(start).Seconds(), p.Resident(t)>>20)
}

// rankPod is a pod as training makes them.
func rankPod(i int) *corev1.Pod {
	var env []corev1.EnvVar
	for n := range 20 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("NCCL_OPTION_%d", n), Value: "some value of about this length"})
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("train-%d", i), Labels: map[string]string{"app": "train", "rank": fmt.Sprint(i)},
		},
		Spec: corev1.PodSpec{
			NodeName:   fmt.Sprintf("worker%d", i/8),
			Containers: []corev1.Container{{Name: "main", Image: "rdma-tools", Env: env}},
		},
	}
}
