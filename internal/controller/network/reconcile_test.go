package network

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
)

// sriov is a network with VFs.
func sriov(name string) *v2beta1.SpiderMultusConfig {
	return &v2beta1.SpiderMultusConfig{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name), Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
			Annotations:       map[string]string{"team": "storage"},
		},
		Spec: v2beta1.MultusConfigSpec{
			CNIType: new(v2beta1.CNISRIOV),
			SRIOV: &v2beta1.SRIOVSpec{
				ResourceName: "spidernet.io/mellanoxrdma",
				IPPools:      &v2beta1.NetworkPools{IPv4: []string{"v4"}},
			},
		},
	}
}

// foreign is a NetworkAttachmentDefinition rail0 that we did not make.
func foreign(owners ...metav1.OwnerReference) *cniv1.NetworkAttachmentDefinition {
	return &cniv1.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "rail0", UID: "nad", OwnerReferences: owners,
			Annotations: map[string]string{"someone": "else", "team": "network"},
		},
		Spec: cniv1.NetworkAttachmentDefinitionSpec{Config: `{"cniVersion":"0.3.1","name":"x","type":"bridge"}`},
	}
}

func condition(t *testing.T, config *v2beta1.SpiderMultusConfig) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(config.Status.Conditions, Ready)
	if c == nil {
		t.Fatalf("%s has no condition %s", config.Name, Ready)
	}
	return *c
}

func annotationsOf(list []cniv1.NetworkAttachmentDefinition) []string {
	var all []string
	for _, d := range list {
		for _, key := range slices.Sorted(maps.Keys(d.Annotations)) {
			all = append(all, key+"="+d.Annotations[key])
		}
	}
	return all
}

// TestCreate wants a network's NetworkAttachmentDefinition and its status with
// two writes, and none after that.
func TestCreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sriov("rail0"))
	told, err := w.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	if w.writes != 2 {
		t.Errorf("%d writes, want 2", w.writes)
	}
	if len(told) != 2 || !strings.Contains(told[0], "created NetworkAttachmentDefinition rail0") {
		t.Errorf("Events %q, want one of the creation and one of the condition", told)
	}
	config := w.config(t, "rail0")
	if c := condition(t, config); c.Status != metav1.ConditionTrue || c.Reason != ReasonReady || c.ObservedGeneration != 1 {
		t.Errorf("condition %+v", c)
	}
	if config.Status.NetworkAttachmentDefinition != "rail0" || config.Status.ResourceName != "spidernet.io/mellanoxrdma" {
		t.Errorf("status %+v", config.Status)
	}
	definition := w.definitions(t)[0]
	if owner := metav1.GetControllerOf(&definition); owner == nil || owner.UID != config.UID || owner.Kind != "SpiderMultusConfig" {
		t.Errorf("its controller is %+v", owner)
	}
	want := []string{
		"k8s.v1.cni.cncf.io/resourceName=spidernet.io/mellanoxrdma",
		"railhead.io/annotations=k8s.v1.cni.cncf.io/resourceName,team",
		"team=storage",
	}
	if diff := cmp.Diff(want, annotationsOf(w.definitions(t))); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if told, err := w.reconcile(t); err != nil || len(told) > 0 || w.writes != 2 {
		t.Errorf("the second look: error %v, Events %q, %d writes", err, told, w.writes-2)
	}
}

// TestKilled kills the reconciler at each of its writes, before the write and
// after it, in each of its tasks: another one brings all to where it would be,
// and then writes nothing more.
func TestKilled(t *testing.T) {
	t.Parallel()
	tasks := map[string]func(t *testing.T) *world{
		"create":    func(t *testing.T) *world { t.Helper(); return newWorld(t, sriov("rail0"), sriov("rail1")) },
		"take over": func(t *testing.T) *world { t.Helper(); return newWorld(t, sriov("rail0"), foreign()) },
		"rename":    renamed,
		"conflict": func(t *testing.T) *world {
			t.Helper()
			return newWorld(t, sriov("rail0"), foreign(other()))
		},
	}
	for name, start := range tasks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := start(t)
			if _, err := whole.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if whole.writes == 0 {
				t.Fatal("no writes at which to be killed")
			}
			for at := range whole.writes {
				for _, lost := range []bool{false, true} {
					t.Run(fmt.Sprintf("write %d lost %t", at+1, lost), func(t *testing.T) {
						t.Parallel()
						kill(t, start(t), whole, at+1, lost)
					})
				}
			}
		})
	}
}

func kill(t *testing.T, w, whole *world, at int, lost bool) {
	t.Helper()
	w.failAt, w.lost = at, lost
	if _, err := w.reconcile(t); err == nil {
		t.Fatal("it was not killed")
	}
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole.definitions(t), w.definitions(t)); diff != "" {
		t.Errorf("NetworkAttachmentDefinitions (-undisturbed +killed):\n%s", diff)
	}
	want, got := condition(t, whole.config(t, "rail0")), condition(t, w.config(t, "rail0"))
	want.LastTransitionTime, got.LastTransitionTime = metav1.Time{}, metav1.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("condition (-undisturbed +killed):\n%s", diff)
	}
	before := w.writes
	if told, err := w.reconcile(t); err != nil || w.writes != before || len(told) > 0 {
		t.Errorf("converged, it writes %d times more, tells %q, and has error %v", w.writes-before, told, err)
	}
}

// other is an owner that is not ours.
func other() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "sriovnetwork.openshift.io/v1", Kind: "SriovNetwork", Name: "net", UID: "other", Controller: new(true)}
}

// renamed is a world in which a network got another name while no webhook was.
func renamed(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, sriov("rail0"))
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	w.change(t, "rail0", func(c *v2beta1.SpiderMultusConfig) { c.Annotations[v2beta1.AnnotationNADName] = "rdma0" })
	w.writes = 0
	return w
}

// TestRenamed wants the old NetworkAttachmentDefinition gone.
func TestRenamed(t *testing.T) {
	t.Parallel()
	w := renamed(t)
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if list := w.definitions(t); len(list) != 1 || list[0].Name != "rdma0" {
		t.Errorf("%d NetworkAttachmentDefinitions, of which the first is %s; want rdma0 alone", len(list), list[0].Name)
	}
	if got := w.config(t, "rail0").Status.NetworkAttachmentDefinition; got != "rdma0" {
		t.Errorf("the status names %q", got)
	}
}

// TestDrift wants everything that others change in ours mended with one write,
// and what they add beside it kept.
func TestDrift(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sriov("rail0"))
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := w.definitions(t)[0]
	for name, edit := range map[string]func(*cniv1.NetworkAttachmentDefinition){
		"config":             func(d *cniv1.NetworkAttachmentDefinition) { d.Spec.Config = "{}" },
		"no config":          func(d *cniv1.NetworkAttachmentDefinition) { d.Spec.Config = "" },
		"annotation":         func(d *cniv1.NetworkAttachmentDefinition) { d.Annotations["team"] = "x" },
		"annotations":        func(d *cniv1.NetworkAttachmentDefinition) { d.Annotations = nil },
		"list of them":       func(d *cniv1.NetworkAttachmentDefinition) { delete(d.Annotations, annotationKeys) },
		"owner":              func(d *cniv1.NetworkAttachmentDefinition) { d.OwnerReferences = nil },
		"owner that is gone": func(d *cniv1.NetworkAttachmentDefinition) { d.OwnerReferences[0].UID = "gone" },
	} {
		w.changeDefinition(t, edit)
		before := w.writes
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, w.definitions(t)[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if w.writes != before+1 {
			t.Errorf("%s: %d writes, want 1", name, w.writes-before)
		}
	}
	w.changeDefinition(t, func(d *cniv1.NetworkAttachmentDefinition) { d.Annotations["note"] = "mine" })
	before := w.writes
	if _, err := w.reconcile(t); err != nil || w.writes != before || w.definitions(t)[0].Annotations["note"] != "mine" {
		t.Errorf("an annotation of somebody else: error %v, %d writes, annotations %v", err, w.writes-before, w.definitions(t)[0].Annotations)
	}
}

// TestDeleted wants a NetworkAttachmentDefinition that somebody deleted back.
func TestDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sriov("rail0"))
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := w.definitions(t)
	if err := w.client.Delete(t.Context(), &cniv1.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rail0"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, w.definitions(t)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestAnnotationRemoved wants an annotation that the SpiderMultusConfig has no
// more to go, and no other.
func TestAnnotationRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sriov("rail0"))
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	w.changeDefinition(t, func(d *cniv1.NetworkAttachmentDefinition) { d.Annotations["note"] = "mine" })
	w.change(t, "rail0", func(c *v2beta1.SpiderMultusConfig) { delete(c.Annotations, "team") })
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"k8s.v1.cni.cncf.io/resourceName=spidernet.io/mellanoxrdma",
		"note=mine",
		"railhead.io/annotations=k8s.v1.cni.cncf.io/resourceName",
	}
	if diff := cmp.Diff(want, annotationsOf(w.definitions(t))); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// TestTakeOver wants a NetworkAttachmentDefinition without a controller to become
// ours, with what others wrote on it where it does not clash.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	keeper := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "keeper", UID: "keeper"}
	w := newWorld(t, sriov("rail0"), foreign(keeper))
	told, err := w.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != 2 || !strings.HasPrefix(told[0], "Normal TakenOver") {
		t.Errorf("Events %q, want one of the take-over", told)
	}
	definition := w.definitions(t)[0]
	if len(definition.OwnerReferences) != 2 || definition.OwnerReferences[0].UID != "keeper" {
		t.Errorf("owners %+v, want the one there was, and ours", definition.OwnerReferences)
	}
	if definition.Annotations["someone"] != "else" || definition.Annotations["team"] != "storage" {
		t.Errorf("annotations %v", definition.Annotations)
	}
	if strings.Contains(definition.Spec.Config, "bridge") {
		t.Errorf("configuration %s", definition.Spec.Config)
	}
}

// TestConflict wants what belongs to somebody else left alone, with words, and
// taken over once it does no more.
func TestConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sriov("rail0"), foreign(other()))
	before := w.definitions(t)
	told, err := w.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, w.definitions(t)); diff != "" {
		t.Errorf("it was changed (-before +after):\n%s", diff)
	}
	c := condition(t, w.config(t, "rail0"))
	if c.Status != metav1.ConditionFalse || c.Reason != ReasonConflict || !strings.Contains(c.Message, "SriovNetwork net") {
		t.Errorf("condition %+v", c)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "Warning Conflict") {
		t.Errorf("Events %q", told)
	}
	w.changeDefinition(t, func(d *cniv1.NetworkAttachmentDefinition) { d.OwnerReferences = nil })
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if c := condition(t, w.config(t, "rail0")); c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
}

// TestRivals wants the older of two SpiderMultusConfigs with one name to have
// the NetworkAttachmentDefinition, whichever is looked at first.
func TestRivals(t *testing.T) {
	t.Parallel()
	older, younger := sriov("zebra"), sriov("ant")
	younger.CreationTimestamp = metav1.NewTime(older.CreationTimestamp.Add(time.Hour))
	for _, c := range []*v2beta1.SpiderMultusConfig{older, younger} {
		c.Annotations[v2beta1.AnnotationNADName] = "rdma0"
	}
	w := newWorld(t, older, younger)
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if owner := metav1.GetControllerOf(&w.definitions(t)[0]); owner.Name != "zebra" {
		t.Errorf("it belongs to %s", owner.Name)
	}
	if c := condition(t, w.config(t, "ant")); c.Reason != ReasonConflict || !strings.Contains(c.Message, "zebra") {
		t.Errorf("condition %+v", c)
	}
}

// TestInvalid wants the NetworkAttachmentDefinition to stay as it is when its
// SpiderMultusConfig stops keeping the rules, other networks to be made, and the
// condition to say what is wrong.
func TestInvalid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sriov("rail0"), sriov("rail1"))
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	before := w.definitions(t)
	w.change(t, "rail0", func(c *v2beta1.SpiderMultusConfig) {
		c.Spec.SRIOV.ResourceName = ""
		c.Generation = 2
	})
	w.change(t, "rail1", func(c *v2beta1.SpiderMultusConfig) { c.Spec.SRIOV.MTU = new(int32(4200)) })
	told, err := w.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	after := w.definitions(t)
	if diff := cmp.Diff(before[0], after[0]); diff != "" {
		t.Errorf("it was changed (-before +after):\n%s", diff)
	}
	if before[1].Spec.Config == after[1].Spec.Config {
		t.Error("the other network did not follow its change")
	}
	c := condition(t, w.config(t, "rail0"))
	if c.Reason != ReasonInvalid || c.ObservedGeneration != 2 || !strings.Contains(c.Message, "spec.sriov.resourceName") {
		t.Errorf("condition %+v", c)
	}
	if !slices.ContainsFunc(told, func(e string) bool { return strings.HasPrefix(e, "Warning Invalid") }) {
		t.Errorf("Events %q", told)
	}
	if w.config(t, "rail0").Status.NetworkAttachmentDefinition != "rail0" {
		t.Error("the status forgot the NetworkAttachmentDefinition that there is")
	}
}

// TestGoing wants nothing made of a SpiderMultusConfig that is being deleted.
func TestGoing(t *testing.T) {
	t.Parallel()
	going := sriov("rail0")
	going.DeletionTimestamp, going.Finalizers = new(metav1.Now()), []string{metav1.FinalizerDeleteDependents}
	w := newWorld(t, going)
	if _, err := w.reconcile(t); err != nil || w.writes != 0 {
		t.Errorf("error %v, %d writes", err, w.writes)
	}
}

// TestPaused wants a reconciler that decided by what is no more so to write
// nothing over what others wrote since.
func TestPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sriov("rail0"), foreign())
	paused, _ := w.reconciler(t)
	stale := w.definitions(t)[0]
	var list cniv1.NetworkAttachmentDefinitionList
	if err := w.client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	stale.ResourceVersion = list.Items[0].ResourceVersion
	paused.Client = staleClient{w.client, &stale}
	if _, err := w.reconcile(t); err != nil { // by another leader
		t.Fatal(err)
	}
	before := w.definitions(t)
	result, err := paused.Reconcile(t.Context(), named(w.config(t, "rail0")))
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("error %v, result %+v: want to look again", err, result)
	}
	if diff := cmp.Diff(before, w.definitions(t)); diff != "" {
		t.Errorf("it was changed (-before +after):\n%s", diff)
	}
}
