package cniserver

import (
	"encoding/json"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/internal/agent/cluster"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/kerneltest"
)

// TestRepublish has what an earlier run did not send, or sent of another sandbox, sent
// now, and nothing where the API server has it.
func TestRepublish(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		one, two := w.sandbox("box1", "train"), w.sandbox("box2", "train")
		w.ok(one, cnicall.Add)
		<-w.cluster.patched
		w.again(func(a record.Attachment) record.Attachment { return a })
		<-w.cluster.patched
		w.keepPatch("ai/train")
		w.ok(one, cnicall.Del)
		back := w.refusePatches()
		w.ok(two, cnicall.Add)
		<-w.cluster.patched
		w.again(func(a record.Attachment) record.Attachment { back(); return a }) // and nobody knows of box2
		if key := <-w.cluster.patched; key != "ai/train" {
			t.Errorf("patched %s, want the pod of the new sandbox", key)
		}
		w.keepPatch("ai/train")
		w.stop()
		pod, err := w.cluster.Pod(t.Context(), "ai", "train", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, att := range w.server.config.Records.All() {
			if !w.server.isPublished(att, pod) {
				t.Errorf("annotations %q are not what was sent", pod.Annotations)
			}
		}
		w.start()
		w.ok(two, cnicall.Del)
		w.stop()
		if n := len(w.cluster.patched); n > 0 {
			t.Errorf("%d patches of a pod that has its status", n)
		}
	})
}

// refusePatches has the API server refuse all patches, however often they are tried, until
// it is back. No agent may run then.
func (w *world) refusePatches() (back func()) {
	refuse := func(errs []error) {
		w.cluster.mu.Lock()
		defer w.cluster.mu.Unlock()
		w.cluster.patchErr = errs
	}
	refuse(slices.Repeat([]error{apierrors.NewServiceUnavailable("away")}, 100))
	return func() {
		refuse(nil)
		for len(w.cluster.patched) > 0 {
			<-w.cluster.patched
		}
	}
}

// keepPatch has a pod say what it was last told, as much of it as is known here.
func (w *world) keepPatch(key string) {
	w.t.Helper()
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	list := w.cluster.patches[key]
	var said metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(list[len(list)-1]), &said); err != nil {
		w.t.Fatal(err)
	}
	pod := w.cluster.pods[key].DeepCopy()
	for name, text := range said.Annotations {
		pod.Annotations[name] = cluster.Digest(text)
	}
	w.cluster.pods[key] = pod
}

// TestPatches has the API server refuse a while; then one patch is sent, the latest,
// and none to a pod that is gone. What an agent did not send, its next run does.
func TestPatches(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		w := newWorld(t)
		s := w.sandbox("box1", "train")
		w.cluster.patchErr = []error{apierrors.NewServiceUnavailable("away"), apierrors.NewServiceUnavailable("away")}
		w.ok(s, cnicall.Add)
		var got []string
		for range 3 {
			got = append(got, <-w.cluster.patched)
		}
		if want := []string{"ai/train failed", "ai/train failed", "ai/train"}; !slices.Equal(want, got) {
			t.Errorf("patches %q, want %q", got, want)
		}
		w.checkPatch("ai/train", 9)
		w.stop()
		w.cluster.patches = map[string][]string{}
		w.start()
		if key := <-w.cluster.patched; key != "ai/train" {
			t.Errorf("patched %s after the restart", key)
		}
		w.checkPatch("ai/train", 9)
		w.ok(s, cnicall.Del)

		w.cluster.patchErr = []error{notFound("pods", "train")}
		w.ok(s, cnicall.Add)
		<-w.cluster.patched
		w.ok(s, cnicall.Del)
		w.stop()
		if len(w.server.publisher.queue) > 0 {
			t.Errorf("queue %v, want nothing for a pod that is gone", w.server.publisher.queue)
		}
	})
}
