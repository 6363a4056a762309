// Package attribution knows whose an RDMA device is: which pod it was given to
// or is used by, and which workload that pod belongs to.
package attribution

// Pod is a pod of this node. A Pod is immutable: where something of it changes,
// there is a new one.
type Pod struct {
	UID       string
	Namespace string // empty where only the UID is known, from its cgroup
	Name      string // the UID where only that is known
	Workload  Workload
}

// Workload is the topmost object that owns a pod, by controller references; the
// pod itself where nothing owns it. It is zero where Kubernetes is not there.
type Workload struct {
	APIVersion string // batch/v1
	Kind       string // Job
	Namespace  string
	Name       string
	Reason     string // why the walk ended before the top; empty where it did not
}

// Method is how a number was attributed to a pod.
type Method string

// The methods, most exact first.
const (
	Exclusive Method = "exclusive"  // the device is the pod's alone
	QPCounter Method = "qp_counter" // the device counts the pod's queue pairs apart
	SoleUser  Method = "sole_user"  // the pod was the only one to use the device
)
