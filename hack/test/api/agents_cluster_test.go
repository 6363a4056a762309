package api

import (
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/agent/cluster"
)

// TestAgentKnowsItsCluster wants the agent of a node, with no more rights than its
// manifest gives, to know what a pod of the node needs, to write what it is attached
// to, and to tell why it is not.
func TestAgentKnowsItsCluster(t *testing.T) {
	s := Exclusive(t)
	s.Install(t)
	s.InstallAgents(t)
	s.node(t, "node1")
	pool := &v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: "pool0"}, Spec: v2beta1.IPPoolSpec{Subnet: "10.0.0.0/24", IPs: []string{"10.0.0.9"}}}
	own, other := userPodOn("node1", "a"), userPodOn("node2", "b")
	for _, o := range []client.Object{
		pool, own, other,
		&cniv1.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rail0"}, Spec: cniv1.NetworkAttachmentDefinitionSpec{Config: "{}"}},
		&v2beta1.SpiderCoordinator{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v2beta1.CoordinatorSpec{PodCIDRType: new("auto")}},
	} {
		if err := s.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	c, err := cluster.New(cluster.Config{API: s.AgentConfig("node1"), Node: "node1", Namespace: Namespace, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Run(t.Context()) }()
	Eventually(t, func() string {
		if err := c.Ready(); err != nil {
			return "ready, not " + err.Error()
		}
		return ""
	})
	pod, err := c.Pod(t.Context(), "default", "a", string(own.UID))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Pod(t.Context(), "default", "a", "another"); !apierrors.IsNotFound(err) {
		t.Errorf("pod that was replaced: error %v", err)
	}
	if _, err := c.Namespace(t.Context(), "default"); err != nil {
		t.Error(err)
	}
	if _, err := c.NAD("default", "rail0"); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Coordinator(); err != nil {
		t.Error(err)
	}
	if meta, _ := c.Node(); meta.UID == "" {
		t.Error("the node is not known")
	}
	if !c.Catalog().Config().EnableIPv6 {
		t.Error("the settings are not the manifest's")
	}
	s.changePool(t, c, pool)
	patch := `{"metadata":{"uid":"` + string(own.UID) + `","annotations":{"k8s.v1.cni.cncf.io/network-status":"[]","railhead.io/attachment":"{}"}}}`
	Eventually(t, func() string { // policies come into force a moment after they were made
		if err := c.PatchPod(t.Context(), "default", "b", []byte(`{"metadata":{"annotations":{"railhead.io/attachment":"{}"}}}`)); !apierrors.IsInvalid(err) {
			return "a refusal, not " + said(err)
		}
		return ""
	})
	if err := c.PatchPod(t.Context(), "default", "a", []byte(patch)); err != nil {
		t.Error(err)
	}
	if err := c.Event(t.Context(), pod, "FailedAttach", "rail 0: no answer"); err != nil {
		t.Error(err)
	}
	events := &corev1.EventList{}
	if err := s.List(t.Context(), events, client.InNamespace("default")); err != nil || len(events.Items) != 1 || events.Items[0].InvolvedObject.UID != own.UID {
		t.Errorf("events %+v, error %v", events.Items, err)
	}
}

// changePool wants a change of a pool to be known, of its spec as of its end.
func (s *Server) changePool(t *testing.T, c *cluster.Cache, pool *v2beta1.SpiderIPPool) {
	t.Helper()
	pool.Status.TotalIPCount = new(int64(1))
	if err := s.Status().Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.IPs = []string{"10.0.0.30"}
	if err := s.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	Eventually(t, func() string {
		if known, ok := c.Catalog().Pool("pool0"); !ok || known.Addresses.Ranges()[0].From().String() != "10.0.0.30" {
			return "the new range"
		}
		return ""
	})
	if err := s.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	Eventually(t, func() string {
		if known, ok := c.Catalog().Pool("pool0"); ok && !known.Deleting {
			return "no pool"
		}
		return ""
	})
}
