package kube

// workloadLabel is a label by which a controller marks the pods of a workload.
type workloadLabel struct {
	label      string
	apiVersion string
	kind       string // empty where another label tells it
}

// workloadLabels are the labels that name a pod's workload, in the order of
// what may own what: a JobSet has Jobs, a RayCluster none.
var workloadLabels = []workloadLabel{
	{"jobset.sigs.k8s.io/jobset-name", "jobset.x-k8s.io/v1alpha2", "JobSet"},
	{"leaderworkerset.sigs.k8s.io/name", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"},
	{"training.kubeflow.org/job-name", "", ""},
	{"ray.io/cluster", "ray.io/v1", "RayCluster"},
	{"volcano.sh/job-name", "batch.volcano.sh/v1alpha1", "Job"},
	{"batch.kubernetes.io/job-name", "batch/v1", "Job"},
	{"kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/v1beta1", "Workload"},
}

// trainingOperator is the label by which Kubeflow's training operator says
// which of its controllers a pod is of.
const trainingOperator = "training.kubeflow.org/operator-name"

// trainingKinds are the kinds of those controllers.
var trainingKinds = map[string]workloadLabel{
	"pytorchjob-controller": {apiVersion: "kubeflow.org/v1", kind: "PyTorchJob"},
	"tfjob-controller":      {apiVersion: "kubeflow.org/v1", kind: "TFJob"},
	"mpijob-controller":     {apiVersion: "kubeflow.org/v1", kind: "MPIJob"},
	"mpi-operator":          {apiVersion: "kubeflow.org/v2beta1", kind: "MPIJob"},
	"xgboostjob-controller": {apiVersion: "kubeflow.org/v1", kind: "XGBoostJob"},
	"paddlejob-controller":  {apiVersion: "kubeflow.org/v1", kind: "PaddleJob"},
	"jaxjob-controller":     {apiVersion: "kubeflow.org/v1", kind: "JAXJob"},
}
