package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	admissionv1 "k8s.io/api/admission/v1"

	"railhead/internal/policy/manifest"
)

const (
	benchNetworks   = 200 // in 25 groups of 8 rails
	benchNamespaces = 125 // all of them annotated
	benchPods       = 500
)

// BenchmarkPods has a pod created: half of the pods ask for 8 rails themselves, the
// others are in a namespace that asks for them. The API server sends no others (see
// internal/webhook/registration), and of these none needs the API to be read: the
// benchmark fails if it is. It reports of one pod the wall time, as p50-ns and
// p99-ns, and the 99th percentile of CPU time, as ours-ns; kept-B is what networks
// and namespaces take in memory, heap-B the process.
func BenchmarkPods(b *testing.B) {
	before := heap()
	server := newBench(b)
	fill(b, server)
	kept := heap() - before
	bodies := podRequests(b)

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var wall, cpu []time.Duration
	for b.Loop() {
		began, used := time.Now(), threadTime(b)
		answer := server.post(pathPods, "application/json", bodies[len(wall)%benchPods])
		cpu = append(cpu, threadTime(b)-used)
		wall = append(wall, time.Since(began))
		if answer.Code != http.StatusOK || !bytes.Contains(answer.Body.Bytes(), []byte(`"patch"`)) {
			b.Fatalf("the pod is not changed: %s", answer.Body)
		}
	}
	if reads := server.reads.Load(); reads > 0 {
		b.Fatalf("the API was read %d times", reads)
	}
	b.ReportMetric(percentile(wall, 50), "p50-ns")
	b.ReportMetric(percentile(wall, 99), "p99-ns")
	b.ReportMetric(percentile(cpu, 99), "ours-ns")
	b.ReportMetric(float64(kept), "kept-B")
	b.ReportMetric(float64(heap()), "heap-B")
}

// fill has the networks and namespaces known.
func fill(b *testing.B, server *bench) {
	b.Helper()
	for i := range benchNetworks {
		object, errs, err := manifest.Decode(fmt.Appendf(nil, `
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata:
  name: rail-%d
  namespace: fabric
  uid: uid-%[1]d
  resourceVersion: "%[1]d"
  annotations: {cni.spidernet.io/rdma-resource-inject: group-%d}
spec:
  cniType: macvlan
  macvlan:
    master: [enp%dnp0]
    rdmaResourceName: example.com/rail%[1]d
    ippools: {ipv4: [pool-%[1]d]}
`, i, i/8, i%8))
		if err != nil || len(errs) > 0 {
			b.Fatal(err, errs)
		}
		server.catalog.Default(object)
		server.catalog.Put(object)
	}
	for i := range benchNamespaces {
		server.namespaces.Put(namespace(fmt.Sprintf("team-%d", i), map[string]string{rdma: fmt.Sprintf("group-%d", i%25)}))
	}
}

// podRequests are the requests to create the pods.
func podRequests(b *testing.B) [][]byte {
	b.Helper()
	bodies := make([][]byte, benchPods)
	for i := range bodies {
		own := ""
		if i%2 == 0 {
			own = fmt.Sprintf("cni.spidernet.io/rdma-resource-inject: group-%d", i%25)
		}
		r := request(b, admissionv1.Create, fmt.Sprintf(trainer, i, i%benchNamespaces, own, i/8), "")
		review := admissionv1.AdmissionReview{Request: r}
		review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
		var err error
		if bodies[i], err = json.Marshal(review); err != nil {
			b.Fatal(err)
		}
	}
	return bodies
}

func percentile(times []time.Duration, percent int) float64 {
	slices.Sort(times)
	return float64(times[len(times)*percent/100])
}

// threadTime is the CPU time of this thread: others on the machine do not count.
func threadTime(b *testing.B) time.Duration {
	b.Helper()
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// trainer is a pod as training jobs have it: its number, namespace, own annotation
// and job are left open.
const trainer = `
apiVersion: v1
kind: Pod
metadata:
  name: trainer-%d
  namespace: team-%d
  labels: {app: trainer, job: "%[4]d", rank: "%[1]d", topology.example.com/block: b7}
  annotations:
    example.com/launcher: torchrun
    %[3]s
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: job-%[4]d, uid: job-uid-%[4]d, controller: true, blockOwnerDeletion: true}]
  managedFields:
    - manager: kube-controller-manager
      operation: Update
      apiVersion: v1
      time: "2026-01-01T00:00:00Z"
      fieldsType: FieldsV1
      fieldsV1: {"f:metadata": {"f:labels": {".": {}, "f:app": {}, "f:job": {}}, "f:ownerReferences": {".": {}}}, "f:spec": {"f:containers": {}}}
spec:
  restartPolicy: Never
  serviceAccountName: trainer
  nodeSelector: {accelerator: h100}
  tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
  volumes:
    - {name: shm, emptyDir: {medium: Memory, sizeLimit: 64Gi}}
    - {name: data, persistentVolumeClaim: {claimName: data}}
    - {name: kube-api-access, projected: {defaultMode: 420, sources: [{serviceAccountToken: {expirationSeconds: 3607, path: token}}, {configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}}]}}
  initContainers:
    - {name: fetch, image: registry.example.com/fetch:1, command: [fetch, --to, /data], volumeMounts: [{name: data, mountPath: /data}]}
    - {name: metrics, image: registry.example.com/metrics:1, restartPolicy: Always, ports: [{containerPort: 9100, protocol: TCP}]}
  containers:
    - name: trainer
      image: registry.example.com/trainer:2
      command: [torchrun, --nnodes, "64", --nproc-per-node, "8", train.py]
      env:
        - {name: NCCL_DEBUG, value: INFO}
        - {name: NCCL_IB_HCA, value: mlx5}
        - {name: RANK, value: "%[1]d"}
        - {name: POD_IP, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: status.podIP}}}
      resources:
        limits: {cpu: "96", memory: 1Ti, nvidia.com/gpu: "8"}
        requests: {cpu: "96", memory: 1Ti, nvidia.com/gpu: "8"}
      securityContext: {capabilities: {add: [IPC_LOCK]}}
      volumeMounts: [{name: shm, mountPath: /dev/shm}, {name: data, mountPath: /data}, {name: kube-api-access, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}]
    - name: log
      image: registry.example.com/log:1
      livenessProbe: {httpGet: {path: /healthz, port: 8080, scheme: HTTP}, periodSeconds: 10, timeoutSeconds: 1}
`
