package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"railhead/internal/attribution"
)

var _ attribution.PodSource = (*Source)(nil)

func logger(t *testing.T) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// running runs a test with a Source that runs, in a bubble of time. All that it
// started has ended when it returns.
func running(t *testing.T, a *apiServer, test func(s *Source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		test(s)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v, want %v", err, context.Canceled)
		}
	})
}

// after lets some time go by in a bubble.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func wantWorkload(t *testing.T, s *Source, uid string, want attribution.Workload) {
	t.Helper()
	pod := s.Pod(uid)
	if pod == nil {
		t.Errorf("pod %s is not known", uid)
		return
	}
	if diff := cmp.Diff(want, pod.Workload); diff != "" {
		t.Errorf("workload of pod %s (-want +got):\n%s", uid, diff)
	}
}

func workload(apiVersion, kind, name, reason string) attribution.Workload {
	w := attribution.Workload{APIVersion: apiVersion, Kind: kind, Namespace: "ai", Name: name, Reason: reason}
	if kind == "Node" {
		w.Namespace = ""
	}
	return w
}

// jobSetChain is a pod's way up to a TrainJob; it returns the pod's controller.
func jobSetChain(a *apiServer) metav1.OwnerReference {
	train := a.setOwner("trainer.kubeflow.org/v1", "TrainJob", "llama", "u1")
	set := a.setOwner("jobset.x-k8s.io/v1", "JobSet", "llama-set", "u2", train)
	return a.setOwner("batch/v1", "Job", "llama-set-0", "u3", set)
}

func TestWorkload(t *testing.T) {
	t.Parallel()
	jobSet := "/apis/jobset.x-k8s.io/v1/namespaces/ai/jobsets/llama-set"
	job := "/apis/batch/v1/namespaces/ai/jobs/llama-set-0"
	for name, test := range map[string]struct {
		pod  func(a *apiServer) *metav1.PartialObjectMetadata
		want attribution.Workload
	}{
		"nobody's": {
			func(*apiServer) *metav1.PartialObjectMetadata { return podOf("u0", "p") },
			workload("v1", "Pod", "p", ""),
		},
		"Deployment": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				deployment := a.setOwner("apps/v1", "Deployment", "web", "u1")
				return podOf("u0", "p", a.setOwner("apps/v1", "ReplicaSet", "web-1", "u2", deployment))
			},
			workload("apps/v1", "Deployment", "web", ""),
		},
		"three above": {
			func(a *apiServer) *metav1.PartialObjectMetadata { return podOf("u0", "p", jobSetChain(a)) },
			workload("trainer.kubeflow.org/v1", "TrainJob", "llama", ""),
		},
		"controller behind other owners": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "u9"}
				return podOf("u0", "p", other, a.setOwner("batch/v1", "Job", "j", "u1", other))
			},
			workload("batch/v1", "Job", "j", ""),
		},
		"owners, none of them the controller": {
			func(*apiServer) *metav1.PartialObjectMetadata {
				return podOf("u0", "p", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "u9"})
			},
			workload("v1", "Pod", "p", ""),
		},
		"in no namespace": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				return podOf("u0", "p", a.setOwner("v1", "Node", "n1", "u1"))
			},
			workload("v1", "Node", "n1", ""),
		},
		"in no namespace and forbidden": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				a.Answers["/api/v1/nodes/n1"] = http.StatusForbidden
				return podOf("u0", "p", a.setOwner("v1", "Node", "n1", "u1"))
			},
			workload("v1", "Node", "n1", "Forbidden"),
		},
		"forbidden in the middle": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				a.Answers[jobSet] = http.StatusForbidden
				return podOf("u0", "p", jobSetChain(a))
			},
			workload("jobset.x-k8s.io/v1", "JobSet", "llama-set", "Forbidden"),
		},
		"forbidden at once": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				a.Answers[job] = http.StatusForbidden
				return podOf("u0", "p", jobSetChain(a))
			},
			workload("batch/v1", "Job", "llama-set-0", "Forbidden"),
		},
		"forbidden, but labelled": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				a.Answers[job] = http.StatusForbidden
				return labelled(podOf("u0", "p", jobSetChain(a)),
					"jobset.sigs.k8s.io/jobset-name", "llama-set", "batch.kubernetes.io/job-name", "llama-set-0")
			},
			workload("jobset.x-k8s.io/v1alpha2", "JobSet", "llama-set", "Forbidden"),
		},
		"forbidden, labelled as the same": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				a.Answers["/apis/kubeflow.org/v1/namespaces/ai/pytorchjobs/bert"] = http.StatusForbidden
				return labelled(podOf("u0", "p", a.setOwner("kubeflow.org/v1", "PyTorchJob", "bert", "u1")), "training.kubeflow.org/job-name", "bert")
			},
			workload("kubeflow.org/v1", "PyTorchJob", "bert", "Forbidden"),
		},
		"labelled, but owners tell more": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				return labelled(podOf("u0", "p", jobSetChain(a)), "jobset.sigs.k8s.io/jobset-name", "llama-set")
			},
			workload("trainer.kubeflow.org/v1", "TrainJob", "llama", ""),
		},
		"labelled alone": {
			func(*apiServer) *metav1.PartialObjectMetadata {
				return labelled(podOf("u0", "p"), "ray.io/cluster", "serve")
			},
			workload("ray.io/v1", "RayCluster", "serve", ""),
		},
		"labelled by a training operator": {
			func(*apiServer) *metav1.PartialObjectMetadata {
				return labelled(podOf("u0", "p"), "training.kubeflow.org/job-name", "bert", "training.kubeflow.org/operator-name", "mpi-operator")
			},
			workload("kubeflow.org/v2beta1", "MPIJob", "bert", ""),
		},
		"gone": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				ref := jobSetChain(a)
				a.Delete(jobSet)
				return podOf("u0", "p", ref)
			},
			workload("jobset.x-k8s.io/v1", "JobSet", "llama-set", "NotFound"),
		},
		"another of the same name": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				ref := jobSetChain(a)
				a.setOwner("batch/v1", "Job", "llama-set-0", "u9", metav1.OwnerReference{
					APIVersion: "batch/v1", Kind: "CronJob", Name: "nightly", UID: "u10", Controller: new(true),
				})
				return podOf("u0", "p", ref)
			},
			workload("batch/v1", "Job", "llama-set-0", "Replaced"),
		},
		"unknown kind": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				return podOf("u0", "p", a.setOwner("batch/v1", "Unheard", "x", "u1"))
			},
			workload("batch/v1", "Unheard", "x", "UnknownKind"),
		},
		"unknown group": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				return podOf("u0", "p", a.setOwner("un.heard/v1", "Of", "x", "u1"))
			},
			workload("un.heard/v1", "Of", "x", "UnknownKind"),
		},
		"no API version": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				return podOf("u0", "p", a.setOwner("a/b/c", "Of", "x", "u1"))
			},
			workload("a/b/c", "Of", "x", "UnknownKind"),
		},
		"circle": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				first := a.setOwner("batch/v1", "Job", "a", "u1")
				second := a.setOwner("batch/v1", "Job", "b", "u2", first)
				return podOf("u0", "p", a.setOwner("batch/v1", "Job", "a", "u1", second))
			},
			workload("batch/v1", "Job", "b", "Cycle"),
		},
		"too deep": {
			func(a *apiServer) *metav1.PartialObjectMetadata {
				ref := a.setOwner("batch/v1", "Job", "top", "top")
				for i := range ownersMost {
					ref = a.setOwner("batch/v1", "Job", fmt.Sprint("j", i), types.UID(fmt.Sprint(i)), ref)
				}
				return podOf("u0", "p", ref)
			},
			workload("batch/v1", "Job", "j0", "TooDeep"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPIServer()
			a.setPod(test.pod(a))
			running(t, a, func(s *Source) { wantWorkload(t, s, "u0", test.want) })
		})
	}
}

func TestPods(t *testing.T) {
	t.Parallel()
	a := newAPIServer()
	static := podOf("u1", "etcd-n1")
	static.Annotations[mirror] = "4f1f0b7c2d3e4a5b6c7d8e9fa0b1c2d3"
	a.setPod(static)
	a.setPod(podOf("u2", "p"))
	running(t, a, func(s *Source) {
		for _, pod := range []*attribution.Pod{s.Pod("u1"), s.Pod("4f1f0b7c2d3e4a5b6c7d8e9fa0b1c2d3"), s.PodByName("ai", "etcd-n1")} {
			if pod == nil || pod.UID != "u1" || pod.Name != "etcd-n1" || pod.Namespace != "ai" {
				t.Errorf("pod %+v, want the static one", pod)
			}
		}
		for _, pod := range []*attribution.Pod{s.Pod("u3"), s.Pod(""), s.PodByName("other", "p")} {
			if pod != nil {
				t.Errorf("pod %+v, want none", pod)
			}
		}
		a.deletePod("u1")
		after(forgetAfter - 1)
		if s.Pod("u1") == nil || s.PodByName("ai", "etcd-n1") == nil {
			t.Error("a pod that was just deleted is not known any more")
		}
		after(time.Second)
		if s.Pod("u1") != nil || s.Pod("4f1f0b7c2d3e4a5b6c7d8e9fa0b1c2d3") != nil || s.PodByName("ai", "etcd-n1") != nil {
			t.Error("a pod that was deleted long ago is still known")
		}
		if s.Pod("u2") == nil {
			t.Error("another pod is not known any more")
		}
	})
}

// TestSameName has a pod be made again under its name, as those of StatefulSets
// are.
func TestSameName(t *testing.T) {
	t.Parallel()
	a := newAPIServer()
	a.setPod(podOf("u1", "p", a.setOwner("batch/v1", "Job", "old", "o1")))
	running(t, a, func(s *Source) {
		a.deletePod("u1")
		a.setPod(podOf("u2", "p", a.setOwner("batch/v1", "Job", "new", "o2")))
		synctest.Wait()
		wantWorkload(t, s, "u1", workload("batch/v1", "Job", "old", ""))
		wantWorkload(t, s, "u2", workload("batch/v1", "Job", "new", ""))
		after(2 * forgetAfter)
		if pod := s.PodByName("ai", "p"); pod == nil || pod.UID != "u2" {
			t.Errorf("pod %v, want the newer", pod)
		}
		if s.Pod("u1") != nil {
			t.Error("the older pod is still known")
		}
	})
}

// TestChange wants a pod to be another value when something of it changed, and
// the same when nothing that matters did.
func TestChange(t *testing.T) {
	t.Parallel()
	a := newAPIServer()
	a.setPod(podOf("u1", "p"))
	running(t, a, func(s *Source) {
		first := s.Pod("u1")
		changed := podOf("u1", "p")
		changed.ResourceVersion = "2"
		a.setPod(changed)
		synctest.Wait()
		if s.Pod("u1") != first {
			t.Error("a pod is another value although nothing changed")
		}
		a.setPod(podOf("u1", "p", a.setOwner("batch/v1", "Job", "j", "o1"))) // it was adopted
		synctest.Wait()
		wantWorkload(t, s, "u1", workload("batch/v1", "Job", "j", ""))
		a.setPod(podOf("u1", "p")) // and released
		synctest.Wait()
		wantWorkload(t, s, "u1", workload("v1", "Pod", "p", ""))
	})
}

func TestAway(t *testing.T) {
	t.Parallel()
	a := newAPIServer()
	a.setPod(podOf("u1", "p", jobSetChain(a)))
	a.setPod(podOf("u2", "q"))
	a.Leave()
	running(t, a, func(s *Source) {
		if s.Pod("u1") != nil || s.Synced() {
			t.Errorf("without an API server a pod is known: %v, or all are: %t", s.Pod("u1"), s.Synced())
		}
		a.ComeBack()
		after(2 * time.Minute)
		if !s.Synced() {
			t.Error("not all pods are known")
		}
		want := workload("trainer.kubeflow.org/v1", "TrainJob", "llama", "")
		wantWorkload(t, s, "u1", want)

		a.Leave()
		a.deletePod("u2")
		after(time.Hour)
		wantWorkload(t, s, "u1", want)
		wantWorkload(t, s, "u2", workload("v1", "Pod", "q", ""))

		a.ComeBack()
		after(2 * time.Minute)
		wantWorkload(t, s, "u1", want)
		if s.Pod("u2") != nil {
			t.Error("a pod is known that was deleted meanwhile")
		}
	})
}

// TestPassingFailure has an owner not be readable for a while.
func TestPassingFailure(t *testing.T) {
	t.Parallel()
	a := newAPIServer()
	path := "/apis/batch/v1/namespaces/ai/jobs/llama-set-0"
	a.Answers[path] = http.StatusInternalServerError
	a.setPod(podOf("u1", "p", jobSetChain(a)))
	running(t, a, func(s *Source) {
		wantWorkload(t, s, "u1", workload("batch/v1", "Job", "llama-set-0", "Unavailable"))
		if !s.Synced() {
			t.Error("pods are kept back for a workload that cannot be read")
		}
		a.Change(func() { delete(a.Answers, path) })
		after(2 * time.Second)
		want := workload("trainer.kubeflow.org/v1", "TrainJob", "llama", "")
		wantWorkload(t, s, "u1", want)
	})
}

// TestSyncedWithWorkloads wants pods not to be called known while the API server
// has yet to answer what owns them: their series would begin under the one owner
// and go on under another.
func TestSyncedWithWorkloads(t *testing.T) {
	t.Parallel()
	a := newAPIServer()
	owner := jobSetChain(a)
	running(t, a, func(s *Source) {
		if !s.Synced() {
			t.Error("without pods not all are known")
		}
		a.Change(func() { a.IsSilent = true })
		a.setPod(podOf("u1", "p", owner))
		synctest.Wait()
		wantWorkload(t, s, "u1", workload("batch/v1", "Job", "llama-set-0", "Pending"))
		if s.Synced() {
			t.Error("all is said to be known of a pod whose workload is being looked for")
		}
	})
}

// TestNotWorse has the API server fail when what was forbidden is asked for
// again.
func TestNotWorse(t *testing.T) {
	t.Parallel()
	a := newAPIServer()
	path := "/apis/batch/v1/namespaces/ai/jobs/llama-set-0"
	a.Answers[path] = http.StatusForbidden
	a.setPod(podOf("u1", "p", jobSetChain(a)))
	running(t, a, func(s *Source) {
		a.Change(func() { a.Answers[path] = http.StatusInternalServerError })
		after(2 * negativeFor)
		a.Change(func() {
			if n := a.Asked["get "+path]; n < 3 {
				t.Errorf("asked %d times, want again and again", n)
			}
			delete(a.Answers, path)
		})
		wantWorkload(t, s, "u1", workload("batch/v1", "Job", "llama-set-0", "Forbidden"))
		after(2 * negativeFor)
		wantWorkload(t, s, "u1", workload("trainer.kubeflow.org/v1", "TrainJob", "llama", ""))
	})
}

// TestForbiddenForAWhile has our rights, and the kinds that are served, grow.
func TestForbiddenForAWhile(t *testing.T) {
	t.Parallel()
	a := newAPIServer()
	path := "/apis/jobset.x-k8s.io/v1/namespaces/ai/jobsets/llama-set"
	a.Answers[path] = http.StatusForbidden
	kinds := a.Served["/apis/trainer.kubeflow.org/v1"]
	delete(a.Served, "/apis/trainer.kubeflow.org/v1")
	a.setPod(podOf("u1", "p", jobSetChain(a)))
	running(t, a, func(s *Source) {
		after(negativeFor / 2)
		wantWorkload(t, s, "u1", workload("jobset.x-k8s.io/v1", "JobSet", "llama-set", "Forbidden"))
		a.Change(func() {
			if n := a.Asked["get "+path]; n != 1 {
				t.Errorf("asked %d times for what is forbidden, want once", n)
			}
			delete(a.Answers, path)
		})
		after(negativeFor)
		wantWorkload(t, s, "u1", workload("trainer.kubeflow.org/v1", "TrainJob", "llama", "UnknownKind"))
		a.Change(func() { a.Served["/apis/trainer.kubeflow.org/v1"] = kinds })
		after(negativeFor + time.Second)
		wantWorkload(t, s, "u1", workload("trainer.kubeflow.org/v1", "TrainJob", "llama", ""))
	})
}

// TestOwnersAreReadOnce has many pods of one job, whose owners are read once,
// and forgotten with the last of them.
func TestOwnersAreReadOnce(t *testing.T) {
	t.Parallel()
	a := newAPIServer()
	ref := jobSetChain(a)
	for i := range 100 {
		a.setPod(podOf(types.UID(fmt.Sprint(i)), fmt.Sprint("p", i), ref))
	}
	running(t, a, func(s *Source) {
		a.Change(func() {
			for path, n := range a.Asked {
				if n != 1 {
					t.Errorf("%s was asked for %d times, want once", path, n)
				}
			}
		})
		for i := range 100 {
			wantWorkload(t, s, fmt.Sprint(i), workload("trainer.kubeflow.org/v1", "TrainJob", "llama", ""))
			if n := remembered(s).owners; n != 3 {
				t.Fatalf("%d owners are known, want 3", n)
			}
			a.deletePod(types.UID(fmt.Sprint(i)))
			after(2 * forgetAfter)
		}
		if left := remembered(s); left != (entries{}) {
			t.Errorf("%+v are left, want none", left)
		}
	})
}

// entries is how much a Source remembers.
type entries struct{ pods, names, owners, metadata, queued int }

func remembered(s *Source) entries {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return entries{len(s.pods), len(s.names), len(s.owners), len(s.informer.GetStore().ListKeys()), s.queue.Len()}
}

// TestChurn has 10,000 pods come and go, 100 a second, each with an owner of its
// own, and counts what is remembered.
func TestChurn(t *testing.T) {
	t.Parallel()
	const all, perSecond, live = 10000, 100, 50
	a := newAPIServer()
	running(t, a, func(s *Source) {
		most := 0
		for i := range all + live {
			if i < all {
				name := fmt.Sprint("p", i)
				a.setPod(podOf(types.UID(name), name, a.setOwner("batch/v1", "Job", name, types.UID("o"+name))))
			}
			if i >= live {
				name := fmt.Sprint("p", i-live)
				a.deletePod(types.UID(name))
				a.Delete(pathOf("batch/v1", "Job", name))
			}
			if i%(perSecond/10) == 0 {
				after(time.Second / 10)
				now := remembered(s)
				most = max(most, now.pods, now.names, now.owners, now.metadata)
			}
		}
		if bound := live + perSecond*int(forgetAfter/time.Second) + perSecond; most > bound || most < live {
			t.Errorf("%d entries, want at most %d: those of the last %v", most, bound, forgetAfter)
		}
		after(2 * forgetAfter)
		if left := remembered(s); left != (entries{}) {
			t.Errorf("%+v of pods that are gone, want none", left)
		}
	})
}

// TestKindsAreBounded asks for kinds of more API versions than are remembered.
func TestKindsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSource(t, newAPIServer())
	k := &s.reader.kinds
	for i := range 3 * versionsKept {
		if _, err := k.find(t.Context(), fmt.Sprintf("g%d/v1", i), "K"); !errors.Is(err, errUnknownKind) {
			t.Fatalf("error %v, want %v", err, errUnknownKind)
		}
		if len(k.known) > versionsKept {
			t.Fatalf("%d API versions are remembered, want at most %d", len(k.known), versionsKept)
		}
	}
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	if _, err := New(newAPIServer().Config(), "", logger(t)); err == nil || !strings.Contains(err.Error(), "node") {
		t.Errorf("error %v, want one that names the node", err)
	}
	if _, err := New(&rest.Config{Host: "http://\x00"}, "n1", logger(t)); err == nil {
		t.Error("no error for a host that is none")
	}
}

// TestTrim wants trimmed metadata to be a small part.
func TestTrim(t *testing.T) {
	t.Parallel()
	pod := labelled(podOf("u1", "p", metav1.OwnerReference{UID: "o1"}, metav1.OwnerReference{UID: "o2", Controller: new(true)}), "ray.io/cluster", "c")
	pod.Annotations[mirror] = "h"
	pod.ResourceVersion = "7"
	got, err := trim(pod)
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: "u1", Namespace: "ai", Name: "p", ResourceVersion: "7",
		Labels: map[string]string{"ray.io/cluster": "c"}, Annotations: map[string]string{mirror: "h"},
		OwnerReferences: []metav1.OwnerReference{{UID: "o2", Controller: new(true)}},
	}}
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := trim("no pod"); got != "no pod" || err != nil {
		t.Errorf("%v, %v, want what is no pod unchanged", got, err)
	}
}

// FuzzTrim holds that a pod is the same to us before and after it is trimmed.
func FuzzTrim(f *testing.F) {
	f.Add("jobset.sigs.k8s.io/jobset-name", "a", "training.kubeflow.org/operator-name", "mpi-operator", "h", "o")
	f.Add("training.kubeflow.org/job-name", "a", "training.kubeflow.org/operator-name", "mpi-operator", "", "")
	f.Fuzz(func(t *testing.T, label, value, label2, value2, hash, owner string) {
		pod := labelled(podOf("u1", "p"), label, value, label2, value2)
		pod.Annotations[mirror] = hash
		if owner != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{UID: "x"}, {UID: types.UID(owner), Controller: new(true)}}
		}
		trimmed, err := trim(pod)
		if err != nil {
			t.Fatal(err)
		}
		var whole, small record
		whole.take(pod)
		small.take(trimmed.(*metav1.PartialObjectMetadata))
		if diff := cmp.Diff(whole, small, cmp.AllowUnexported(record{})); diff != "" {
			t.Errorf("(-whole +trimmed):\n%s", diff)
		}
	})
}
